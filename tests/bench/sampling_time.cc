// Measures the CPU milliseconds of sampling from a names model and a characters model; prints
// medians of several repetitions.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "server/engine/samples.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

RunConfig CharactersRun() {
  RunConfig run = NamesRun(42, NormPlacement::kPre, true);
  std::ifstream file(ABLATE_EXAMPLES_DATA "/tinyshakespeare.txt", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  run.task = *ReadTextTask(text.str(), 0.1);
  run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
  run.model.layers = 4;
  run.model.width = 128;
  run.model.context = 64;
  run.model.hidden = 512;
  run.model.activation = Activation::kGelu;
  run.training.batch = 32;
  return run;
}

std::string CheckpointOf(const RunConfig& run, uint32_t steps) {
  const auto trainer = MakeTrainer(run);
  if (!trainer.ok() || !(*trainer)->Advance(steps, [] { return false; }).ok()) return "";
  return (*trainer)->ExportCheckpoint().value_or("");
}

// Returns the milliseconds of one request; below 0 if it failed.
double Ask(const RunConfig& run, const std::string& checkpoint, uint32_t count) {
  SampleOptions options;
  options.count = count;
  const std::atomic<bool> stop{false};
  const std::clock_t begin = std::clock();
  const auto counts = GenerateSamples(run, checkpoint, options, stop, [](const auto&) {});
  const double took = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return counts.ok() ? took : -1;
}

bool Measure(const char* name, RunConfig run, uint32_t steps) {
  run.training.trainer = TrainerKind::kNative;
  run.evaluation.every = run.training.steps;
  const std::string checkpoint = CheckpointOf(run, steps);
  for (const uint32_t count : {20u, 1000u}) {
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) times.push_back(Ask(run, checkpoint, count));
    std::sort(times.begin(), times.end());
    if (times.front() < 0) return false;
    std::printf("%s, %u samples: %.1f ms\n", name, count, times[times.size() / 2]);
  }
  return true;
}

int Run() {
  PrepareLaneThread();
  const bool names = Measure("names", NamesRun(42, NormPlacement::kPre, true), 1000);
  return names && Measure("characters", CharactersRun(), 40) ? 0 : 1;
}

}  // namespace
}  // namespace ablate::engine

int main() { return ablate::engine::Run(); }
