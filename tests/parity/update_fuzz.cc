// Checks updates of both backends over drawn settings that no test covers, for a given time; run by
// hand (docs/explanation/trainers.md).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "server/engine/trainer.h"
#include "tests/parity/update_judge.h"

namespace ablate::engine {
namespace {

// Checks settings by number from `first` on, in batches. Returns 0 if none has failed.
int Run(double seconds, uint64_t first) {
  constexpr uint64_t kBatch = 50;
  PrepareLaneThread();
  const auto begin = std::chrono::steady_clock::now();
  bool failed = false;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
         seconds) {
    std::vector<GridCase> cases;
    for (uint64_t number = first; number < first + kBatch; ++number) {
      cases.push_back(DrawCase(number));
      cases.back().precision = Precision::kFloat32;
    }
    const UpdateVerdict verdict = JudgeUpdates(cases);
    if (!verdict.missing.empty()) {
      std::cerr << verdict.missing << "\n";
      return 2;
    }
    std::printf("settings %llu to %llu\n", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(first + kBatch - 1));
    for (const auto& [backend, tally] : verdict.tallies) {
      std::printf("  %s: %d settings, %zu tensors, errors %.2f units, worst %.1f\n",
                  backend.c_str(), tally.cases, tally.errors.size(), tally.MeanError(),
                  tally.Worst());
    }
    std::fputs(verdict.failures.c_str(), stdout);
    failed = failed || !verdict.failures.empty();
    first += kBatch;
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: update_fuzz SECONDS FIRST_SETTING\n";
    return 2;
  }
  return ablate::engine::Run(std::atof(argv[1]), std::strtoull(argv[2], nullptr, 10));
}
