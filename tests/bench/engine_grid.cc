// Trains a part of the names grid with the engine alone, to measure the service's overhead: runs of
// `seeds` seeds on `lanes` threads. Prints the seconds that this took.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

// Returns a run of examples/names-norm.yaml, setting `pre`, at its base learning rate, with the
// trainer that auto resolves to.
RunConfig GridRun(uint32_t seed) {
  RunConfig run = NamesRun(seed, NormPlacement::kPre, true);
  run.training.trainer = TrainerKind::kNative;
  run.training.checkpoints = {0, 100, 500};
  return run;
}

bool Train(const RunConfig& run) {
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer(run);
  if (!trainer.ok()) return false;
  while (true) {
    const auto progress = (*trainer)->Advance(100, [] { return false; });
    if (!progress.ok()) return false;
    if (progress->outcome != Outcome::kTraining) return true;
  }
}

int Run(int lanes, uint32_t seeds) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint32_t> next{0};
  std::atomic<bool> good{true};
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&] {
      PrepareLaneThread();
      for (uint32_t i = next++; i < seeds; i = next++) {
        if (!Train(GridRun(42 + i))) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::printf("%.3f\n", elapsed.count());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: engine_grid LANES SEEDS\n";
    return 2;
  }
  return ablate::engine::Run(std::atoi(argv[1]), static_cast<uint32_t>(std::atoi(argv[2])));
}
