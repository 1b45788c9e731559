// Trains one workload for trainer_vs_eager.py: reads a number of steps per line of standard input,
// makes them, and prints the milliseconds of wall and of processor time per step, and the mean
// loss.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "server/engine/core/data/random.h"
#include "server/engine/names.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

// Returns random text over 64 characters in lines that fill the context: the shape of the source's
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

RunConfig RandomCharactersRun() { return CharactersRun(*ReadDocumentsTask(RandomText(), 0)); }

RunConfig AlignmentRun() {
  RunConfig run = RandomCharactersRun();
  run.training.rule = LearningRule::kFeedbackAlignment;
  return run;
}

// Returns a run with twenty blocks of width 64.
RunConfig DepthRun() {
  RunConfig run = RandomCharactersRun();
  run.model.layers = 20;
  run.model.width = 64;
  run.model.hidden = 256;
  run.model.tied_head = false;
  return run;
}

// Returns a run on names of fifteen letters, so that a step has all sixteen positions.
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

// Returns a run with switches that the other workloads don't use, in four blocks of width 64 on
// windows of plays.
RunConfig PlaysRun() {
  RunConfig run = RandomCharactersRun();
  std::ifstream file(ABLATE_EXAMPLES_DATA "/tinyshakespeare.txt", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  run.task = *ReadTextTask(text.str(), 0.1);
  run.model.width = 64;
  run.model.hidden = 256;
  return run;
}

RunConfig OddSandwichRun() {
  RunConfig run = PlaysRun();
  run.model.norm.placement = NormPlacement::kSandwich;
  run.model.positions = Positions::kRotary;
  run.model.activation = Activation::kSwiglu;
  run.model.hidden = 128;
  return run;
}

RunConfig OddAlignmentRun() {
  RunConfig run = PlaysRun();
  run.training.rule = LearningRule::kFeedbackAlignment;
  run.model.attention.kind = AttentionKind::kSigmoid;
  run.model.attention.score_bias = -std::log(64.0);
  return run;
}

RunConfig OddMasksRun() {
  RunConfig run = PlaysRun();
  run.model.attention.causal = false;
  run.model.dropout = 0.1;
  return run;
}

// Returns a small model of Llama's shape, and the same with norms of queries and keys and one head
// of keys and values for two of queries.
RunConfig LlamaRun() {
  RunConfig run = PlaysRun();
  run.model.norm.kind = NormKind::kRms;
  run.model.norm.bias = false;
  run.model.bias = false;
  run.model.positions = Positions::kRotary;
  run.model.activation = Activation::kSwiglu;
  run.model.hidden = 176;
  return run;
}

RunConfig QwenRun() {
  RunConfig run = LlamaRun();
  run.model.attention.kv_heads = 2;
  run.model.attention.qk_norm.kind = QkNormKind::kRms;
  run.model.attention.qk_norm.scale = 0.25;
  return run;
}

// Returns a GPT-2 of 124M parameters on a window of 512 tokens. The tokens are characters, which
// makes no difference to the time.
RunConfig Gpt2Run() {
  RunConfig run = PlaysRun();
  run.model.vocabulary = 50257;
  run.model.layers = 12;
  run.model.width = 768;
  run.model.hidden = 3072;
  run.model.heads = 12;
  run.model.context = 512;
  run.model.activation = Activation::kGeluTanh;
  run.model.init.kind = InitKind::kGpt2;
  run.model.tied_head = true;
  run.model.head_bias = false;
  run.training.batch = 1;
  run.evaluation.tokens = 512;
  return run;
}

struct Workload {
  const char* name;
  RunConfig (*make)();
};

constexpr Workload kWorkloads[] = {
    {"names", [] { return NamesRun(42, NormPlacement::kPre, true); }},
    {"names16", LongNamesRun},
    {"recall", [] { return RecallRun(0, NormPlacement::kPost); }},
    {"depth", DepthRun},
    {"characters", RandomCharactersRun},
    {"alignment", AlignmentRun},
    {"odd_sandwich", OddSandwichRun},
    {"odd_alignment", OddAlignmentRun},
    {"odd_masks", OddMasksRun},
    {"llama", LlamaRun},
    {"qwen", QwenRun},
    {"gpt2", Gpt2Run},
};

const Workload* FindWorkload(absl::string_view name) {
  const auto* const found = std::find_if(std::begin(kWorkloads), std::end(kWorkloads),
                                         [&](const Workload& one) { return one.name == name; });
  return found == std::end(kWorkloads) ? nullptr : found;
}

// Returns the run without an end and without evaluations, except one batch before the first step.
RunConfig Endless(RunConfig run) {
  run.training.steps = 1000000;
  run.training.final_checkpoint = false;
  run.evaluation.every = run.training.steps;
  run.evaluation.batches = std::holds_alternative<TextTask>(run.task) ? 1 : 0;
  if (auto* documents = std::get_if<DocumentsTask>(&run.task)) documents->held_out = 0;
  return run;
}

double ProcessorMs() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double WallMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

double MeanLoss(const RunProgress& progress) {
  double sum = 0, count = 0;
  for (const Point& point : progress.points) {
    if (point.key != "train/loss") continue;
    sum += point.value;
    ++count;
  }
  return sum / count;
}

int Serve(RunConfig run) {
  PrepareLaneThread();
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer(std::move(run));
  if (!trainer.ok()) {
    std::cerr << trainer.status() << "\n";
    return 1;
  }
  uint32_t steps = 0;
  while (std::cin >> steps) {
    const double wall = WallMs(), processor = ProcessorMs();
    const absl::StatusOr<RunProgress> progress = (*trainer)->Advance(steps, [] { return false; });
    if (!progress.ok()) return 1;
    const double wall_taken = WallMs() - wall, processor_taken = ProcessorMs() - processor;
    std::printf("%.4f %.4f %.7f\n", wall_taken / steps, processor_taken / steps,
                MeanLoss(*progress));
    std::fflush(stdout);
  }
  return 0;
}

int Run(int argc, char** argv) {
  const bool complete = argc >= 3 && argc <= 5;
  const Workload* const workload = complete ? FindWorkload(argv[1]) : nullptr;
  const auto kind = complete ? FindByName<TrainerKind>(argv[2]) : std::nullopt;
  const auto precision = FindByName<Precision>(argc > 3 ? argv[3] : "float32");
  uint32_t threads = 1;
  const bool counted = argc < 5 || absl::SimpleAtoi(argv[4], &threads);
  if (workload == nullptr || !kind.has_value() || !precision.has_value() || !counted) {
    std::cerr << "usage: trainer_vs_eager WORKLOAD torch|native [PRECISION [THREADS]], of the "
                 "workloads";
    for (const Workload& one : kWorkloads) std::cerr << " " << one.name;
    std::cerr << "\n";
    return 2;
  }
  RunConfig run = Endless(workload->make());
  run.training.trainer = *kind;
  run.training.threads = threads;
  run.precision = *precision;
  return Serve(std::move(run));
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) { return ablate::engine::Run(argc, argv); }
