// Writes event files of known points into the folder named on the command line, for
// read_events.py.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/report/export/encoder.h"

namespace {

// Both sides compute these, so they are exact in float32.
double ValueAt(uint32_t step, int cell) { return step * 0.25 - cell; }

void WriteCell(const std::string& folder, int index) {
  const auto encoder = ablate::report::MakeTensorBoardEncoder();
  ablate::report::ExportedCell cell;
  cell.name = "pre-s" + std::to_string(index);
  cell.start_time = 1'700'000'000.5;
  std::string bytes;
  encoder->Begin(cell, &bytes);
  std::vector<uint32_t> steps;
  std::vector<double> values;
  for (uint32_t step = 0; step < 1000; ++step) {
    steps.push_back(step);
    values.push_back(ValueAt(step, index));
  }
  encoder->Add("train/loss", steps, values, &bytes);
  encoder->Add("eval/loss", {0, 4'000'000'000}, {1e300, NAN}, &bytes);
  const std::filesystem::path path = std::filesystem::path(folder) / encoder->Path(cell);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  for (int index = 0; index < 2; ++index) WriteCell(argv[1], index);
  return 0;
}
