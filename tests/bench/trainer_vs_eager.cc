// Trains one workload in rounds for trainer_vs_eager.py: reads a number of steps a line from
// standard input, makes them, and answers with the milliseconds of wall and of processor time that
// a step took.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "server/engine/data/random.h"
#include "server/engine/names.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

// Random text over 64 characters in lines that fill the context: the shape of the source's
// character model.
std::string RandomText() {
  SplitMix64 generator(1);
  std::string text;
  for (int line = 0; line < 2000; ++line) {
    for (int i = 0; i < 64; ++i) text += static_cast<char>('0' + generator.Below(64));
    text += '\n';
  }
  return text;
}

RunConfig CharactersRun() {
  RunConfig run;
  run.task = *ReadDocumentsTask(RandomText(), 0);
  run.model.vocabulary = 65;
  run.model.layers = 4;
  run.model.width = 128;
  run.model.heads = 4;
  run.model.context = 64;
  run.model.hidden = 512;
  run.model.tied_head = true;
  run.model.head_bias = false;
  run.model.init.kind = InitKind::kGpt2;
  run.training.batch = 32;
  run.training.optimizer.weight_decay = 0.01;
  return run;
}

RunConfig AlignmentRun() {
  RunConfig run = CharactersRun();
  run.training.rule = LearningRule::kFeedbackAlignment;
  return run;
}

// Twenty blocks of width 64.
RunConfig DepthRun() {
  RunConfig run = CharactersRun();
  run.model.layers = 20;
  run.model.width = 64;
  run.model.hidden = 256;
  run.model.tied_head = false;
  return run;
}

// Names of fifteen letters: a step has all sixteen positions.
RunConfig LongNamesRun() {
  RunConfig run = NamesRun(42, NormPlacement::kPre, true);
  SplitMix64 generator(1);
  std::string text = "abcdefghijklmnopqrstuvwxyz\n";
  for (int line = 0; line < 4000; ++line) {
    for (int i = 0; i < 15; ++i) text += static_cast<char>('a' + generator.Below(26));
    text += '\n';
  }
  run.task = *ReadDocumentsTask(text, 0);
  return run;
}

RunConfig Workload(const std::string& name) {
  RunConfig run = name == "names"       ? NamesRun(42, NormPlacement::kPre, true)
                  : name == "names16"   ? LongNamesRun()
                  : name == "recall"    ? RecallRun(0, NormPlacement::kPost)
                  : name == "depth"     ? DepthRun()
                  : name == "alignment" ? AlignmentRun()
                                        : CharactersRun();
  run.training.steps = 1000000;
  run.training.final_checkpoint = false;
  run.evaluation.every = run.training.steps;
  run.evaluation.batches = 0;
  if (auto* documents = std::get_if<DocumentsTask>(&run.task)) documents->held_out = 0;
  return run;
}

double ProcessorMs() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double WallMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

int Serve(const std::string& name, TrainerKind kind) {
  PrepareLaneThread();
  RunConfig run = Workload(name);
  run.training.trainer = kind;
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer({run});
  if (!trainer.ok()) {
    std::cerr << trainer.status() << "\n";
    return 1;
  }
  uint32_t steps = 0;
  while (std::cin >> steps) {
    const double wall = WallMs(), processor = ProcessorMs();
    const absl::StatusOr<std::vector<RunProgress>> progress =
        (*trainer)->Advance(steps, [] { return false; });
    if (!progress.ok()) return 1;
    std::printf("%.4f %.4f\n", (WallMs() - wall) / steps, (ProcessorMs() - processor) / steps);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  using ablate::engine::TrainerKind;
  const auto kind = argc == 3 ? ablate::engine::FindByName<TrainerKind>(argv[2]) : std::nullopt;
  if (!kind.has_value()) {
    std::cerr
        << "usage: trainer_vs_eager names|names16|recall|depth|characters|alignment torch|native\n";
    return 2;
  }
  return ablate::engine::Serve(argv[1], *kind);
}
