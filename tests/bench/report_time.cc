// Measures time and memory of a report: `report_time SETTINGS RATES SEEDS STEPS [PAGE]` creates a
// grid of these sizes in a store on disk, renders its page, and writes it to PAGE.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/report/html/page.h"
#include "server/results/report.h"
#include "tests/results/stored_grid.h"

namespace ablate::results {
namespace {

struct Size {
  int settings = 3, rates = 5, seeds = 12, steps = 1000;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// More meaningful than wall time on a shared machine.
double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double seconds = 0;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  }
  return seconds;
}

std::string Setting(int index) {
  constexpr const char* kNames[] = {"pre", "post", "none"};
  return index < 3 ? kNames[index] : absl::StrCat("other", index);
}

double Rate(int index) { return std::round(1000 * std::pow(2, index)) / 1e6; }

std::string Spec(const Size& size) {
  std::string text = absl::StrCat(R"(
    name: "norms" question: "Does the placement of the norm matter once each has its own rate?"
    base { task { legacy_recall { keys: 20 draw: 4 } } model { layers: 1 width: 8 heads: 2 }
           training { batch: 2 steps: )",
                                  size.steps, R"( } }
    report { summaries { key: "train/loss" last: 100 } summaries { key: "train/loss" first: 50 } }
    limits { runs: 100000 }
    seeds { first: 42 count: )",
                                  size.seeds, " } axes { name: \"placement\" ");
  for (int i = 0; i < size.settings; ++i) {
    absl::StrAppend(&text, "settings { label: \"", Setting(i), "\"");
    if (i > 0) {
      absl::StrAppend(&text,
                      " set { key: \"model.feed_forward.hidden\" value { number_value: ", 32 + i,
                      " } }");
    }
    absl::StrAppend(&text, " } ");
  }
  absl::StrAppend(&text, "} axes { name: \"lr\" field: \"training.learning_rate\" tune: true ");
  for (int i = 0; i < size.rates; ++i) {
    absl::StrAppend(&text, "values { number_value: ", Rate(i), " } ");
  }
  return absl::StrCat(text, "}");
}

// Returns a falling loss with noise that depends on the seed.
StoredGrid::Curves CurvesOf(const Size& size, int setting, int rate, int seed) {
  StoredGrid::Curves curves;
  const double best = size.rates / 2.0 - setting % 3;
  const double level = 2.3 + .03 * (setting % 5) + .02 * std::pow(rate - best, 2) +
                       .01 * std::sin(seed * 7 + setting * 3 + rate);
  for (int step = 0; step < size.steps; ++step) {
    const double noise = .2 * std::sin(step * 12.9898 + seed * 78.233);
    curves["train/loss"].emplace_hint(curves["train/loss"].end(), step,
                                      level + noise + 1.1 * std::exp(-step * 8. / size.steps));
  }
  for (int i = 0; i <= 10; ++i) {
    curves["eval/loss"][static_cast<uint32_t>(i * size.steps / 10)] = level + 1. / (1 + 9. * i);
  }
  return curves;
}

void Fill(const Size& size, StoredGrid* grid) {
  for (int setting = 0; setting < size.settings; ++setting) {
    for (int rate = 0; rate < size.rates; ++rate) {
      for (int seed = 0; seed < size.seeds; ++seed) {
        const std::string cell = absl::StrCat(Setting(setting), "-lr", Rate(rate), "-s", 42 + seed);
        const bool diverged = setting == 2 && rate + 1 == size.rates && seed % 3 == 0;
        grid->Finish(cell, CurvesOf(size, setting, rate, seed), diverged);
      }
    }
  }
}

int Measure(const Size& size, const std::string& folder, const std::string& path) {
  StoredGrid grid(Spec(size), folder);
  Fill(size, &grid);
  if (!grid.store()->Maintain().ok()) return 1;
  const double before = PeakMegabytes();
  const double cpu_before = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  ReportSources sources;
  sources.store = grid.store();
  v1::CompareRequest request;
  request.set_experiment(grid.experiment());
  auto stored = LoadExperiment(sources.store, grid.experiment());
  if (!stored.ok()) {
    std::fprintf(stderr, "%s\n", stored.status().ToString().c_str());
    return 1;
  }
  const auto experiment =
      DescribeExperiment(sources, *std::move(stored), request, "", "e1-", [] { return false; });
  if (!experiment.ok()) {
    std::fprintf(stderr, "%s\n", experiment.status().ToString().c_str());
    return 1;
  }
  const html::Page page = {"0.1.0", "some day", {{experiment->id, experiment->question}}};
  const std::string text = absl::StrCat(
      html::PageHead(page), html::ExperimentSection(page, 0, *experiment), html::PageFoot(page));
  std::printf(
      "%d runs x %d steps: %.2f s (%.2f s of CPU), page %.2f MB, peak memory %.0f MB (%.0f "
      "before)\n",
      size.settings * size.rates * size.seeds, size.steps, SecondsSince(start),
      CpuSeconds() - cpu_before, static_cast<double>(text.size()) / 1e6, PeakMegabytes(), before);
  if (!path.empty()) std::ofstream(path) << text;
  return 0;
}

}  // namespace
}  // namespace ablate::results

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const ablate::results::Size size = {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]),
                                      std::atoi(argv[4])};
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("report_time." + std::to_string(getpid()));
  const int code = ablate::results::Measure(size, folder, argc > 5 ? argv[5] : "");
  std::filesystem::remove_all(folder);
  return code;
}
