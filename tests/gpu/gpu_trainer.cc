// Trains one workload on several lanes of a GPU, for gpu_vs_pytorch.py: reads a number of steps per
// line of standard input, makes them on every lane, and prints the milliseconds per step of one
// lane and the steps per second of all.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "server/engine/accelerator.h"
#include "server/engine/core/data/random.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/gpu/gpt2_run.h"

namespace ablate::engine {
namespace {

// Returns random text over `letters` characters in one line.
std::string RandomText(int64_t length, uint64_t letters) {
  SplitMix64 generator(1);
  std::string text;
  for (int64_t i = 0; i < length; ++i) text += static_cast<char>('0' + generator.Below(letters));
  return text;
}

RunConfig RandomCharactersRun() {
  return CharactersRun(*ReadTextTask(RandomText(200000, 65), 0.1));
}

RunConfig Gpt2RunIn(Precision precision) {
  RunConfig run = Gpt2Run();
  run.precision = precision;
  return run;
}

struct Workload {
  const char* name;
  RunConfig (*make)();
};

constexpr Workload kWorkloads[] = {
    {"names", [] { return NamesRun(42, NormPlacement::kPre, true); }},
    {"recall", [] { return RecallRun(0, NormPlacement::kPost); }},
    {"s4", RandomCharactersRun},
    {"gpt2", Gpt2Run},
    {"gpt2-tf32", [] { return Gpt2RunIn(Precision::kTf32); }},
    {"gpt2-bf16", [] { return Gpt2RunIn(Precision::kBfloat16); }},
};

double Seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Makes `steps` updates with every trainer, each on a thread of its own. Returns false on an error.
bool AdvanceAll(const std::vector<std::unique_ptr<Trainer>>& trainers, uint32_t steps) {
  std::vector<absl::Status> statuses(trainers.size());
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < trainers.size(); ++lane) {
    threads.emplace_back([&, lane] {
      PrepareLaneThread();
      statuses[lane] = trainers[lane]->Advance(steps, [] { return false; }).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) std::cerr << status << "\n";
    if (!status.ok()) return false;
  }
  return true;
}

int Serve(RunConfig run, int lanes, const std::string& plugin) {
  PrepareLaneThread();
  const auto accelerator = OpenAccelerator(plugin);
  if (!accelerator.ok()) {
    std::cerr << accelerator.status() << "\n";
    return 1;
  }
  run.device = Device::kCuda;
  run.training.steps = 10000000;
  run.training.final_checkpoint = false;
  run.evaluation.every = run.training.steps;
  run.evaluation.batches = 1;
  if (auto* documents = std::get_if<DocumentsTask>(&run.task)) documents->held_out = 0;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int lane = 0; lane < lanes; ++lane) {
    run.seed = static_cast<uint32_t>(lane);
    auto trainer = MakeTrainer(run, *accelerator);
    if (!trainer.ok()) {
      std::cerr << trainer.status() << "\n";
      return 1;
    }
    trainers.push_back(*std::move(trainer));
  }
  uint32_t steps = 0;
  while (std::cin >> steps) {
    const double begin = Seconds();
    if (!AdvanceAll(trainers, steps)) return 1;
    const double took = Seconds() - begin;
    std::printf("%.5f %.2f\n", 1e3 * took / steps, lanes * static_cast<double>(steps) / took);
    std::fflush(stdout);
  }
  return 0;
}

// Trains the grid of examples/names-norm.yaml, whole runs with evaluations and checkpoints: 6
// settings with 30 seeds. Prints the seconds that this took.
int TrainGrid(int lanes, const std::string& plugin) {
  PrepareLaneThread();
  const auto accelerator = OpenAccelerator(plugin);
  if (!accelerator.ok()) {
    std::cerr << accelerator.status() << "\n";
    return 1;
  }
  std::vector<RunConfig> runs;
  for (const NormPlacement placement :
       {NormPlacement::kPre, NormPlacement::kPost, NormPlacement::kNone}) {
    for (const bool final_norm : {true, false}) {
      for (uint32_t seed = 42; seed < 72; ++seed) {
        runs.push_back(NamesRun(seed, placement, final_norm));
        runs.back().device = Device::kCuda;
        runs.back().training.checkpoints = {0, 100, 500};
      }
    }
  }
  std::atomic<size_t> next{0};
  std::atomic<bool> good{true};
  const double begin = Seconds();
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&] {
      PrepareLaneThread();
      for (size_t i = next++; i < runs.size(); i = next++) {
        const auto trainer = MakeTrainer(runs[i], *accelerator);
        Outcome outcome = Outcome::kTraining;
        while (trainer.ok() && outcome == Outcome::kTraining) {
          const auto progress = (*trainer)->Advance(256, [] { return false; });
          if (!progress.ok()) break;
          outcome = progress->outcome;
        }
        if (outcome == Outcome::kTraining) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu runs on %d lanes: %.2f s\n", runs.size(), lanes, Seconds() - begin);
  return good ? 0 : 1;
}

int Run(int argc, char** argv) {
  int lanes = 0;
  if (argc == 4 && absl::SimpleAtoi(argv[2], &lanes) && lanes > 0) {
    if (absl::string_view(argv[1]) == "names-grid") return TrainGrid(lanes, argv[3]);
    for (const Workload& one : kWorkloads) {
      if (absl::string_view(one.name) == argv[1]) return Serve(one.make(), lanes, argv[3]);
    }
  }
  std::cerr << "usage: gpu_trainer WORKLOAD LANES PLUGIN, of the workloads names-grid";
  for (const Workload& one : kWorkloads) std::cerr << " " << one.name;
  std::cerr << "\n";
  return 2;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) { return ablate::engine::Run(argc, argv); }
