// Makes trainers on a device, and checks what holds on every one: blocks give the bits of single
// steps, resumed runs those of uninterrupted ones, and a run ends at its exact step.
#ifndef ABLATE_TESTS_ENGINE_DEVICE_RUNS_H_
#define ABLATE_TESTS_ENGINE_DEVICE_RUNS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {

using TrainerMaker = absl::FunctionRef<std::unique_ptr<Trainer>(const RunConfig& run)>;

// Small runs that together use what differs on a device: ragged and uniform batches, padding,
// running statistics, dropout, accumulation, every optimizer, clipping, EMA weights, and a loss
// that a device computes along with its gradients.
inline std::vector<std::pair<std::string, RunConfig>> DeviceRuns() {
  std::vector<std::pair<std::string, RunConfig>> runs;
  runs.emplace_back("documents", SmallDocumentsRun(1));
  RunConfig run = SmallRecallRun(2);
  run.training.clip = 0.5;
  run.training.ema = 0.9;
  runs.emplace_back("recall with clipping and EMA", run);
  run = SmallTextRun(3);
  run.model.norm.kind = NormKind::kBatch;
  run.training.optimizer.kind = OptimizerKind::kSgd;
  run.training.optimizer.momentum = 0.9;
  runs.emplace_back("text with batch norm and SGD", run);
  run = SmallDocumentsRun(4);
  run.model.dropout = 0.2;
  run.training.batch = 4;
  run.training.accumulation = 2;
  run.model.norm.kind = NormKind::kBatch;
  run.evaluation.record = {Record::kGradientByBlock};
  runs.emplace_back("documents with dropout, micro-batches and batch norm", run);
  run = SmallTextRun(5);
  run.model.positions = Positions::kRotary;
  run.model.norm.kind = NormKind::kLayer;
  run.training.rule = LearningRule::kFeedbackAlignment;
  runs.emplace_back("text with rotary positions and feedback alignment", run);
  run = SmallDocumentsRun(6);
  run.model.vocabulary = 1030;  // large, and not aligned
  run.model.head_bias = true;
  run.training.batch = 4;
  run.training.accumulation = 2;
  run.training.label_smoothing = 0.1;
  runs.emplace_back("documents with a large vocabulary and label smoothing", run);
  run = SmallTextRun(7);
  run.training.optimizer.kind = OptimizerKind::kMuon;
  run.training.optimizer.momentum = 0.9;
  run.training.optimizer.weight_decay = 0.1;
  run.training.optimizer.weight_decay_form = WeightDecayForm::kIndependent;
  run.training.schedule = {ScheduleKind::kWsd, 3, 8};
  runs.emplace_back("text with Muon and independent decay", run);
  run = SmallDocumentsRun(8);
  run.training.optimizer.kind = OptimizerKind::kLion;
  run.training.optimizer.weight_decay = 0.1;
  run.training.optimizer.rates = {0.5, 2, 0.1};
  run.training.ema = 0.9;
  runs.emplace_back("documents with Lion and rates by group", run);
  run = SmallDocumentsRun(9);
  run.model.positions = Positions::kAlibi;
  run.model.attention.window = 4;
  run.model.attention.full_every = 2;
  run.model.attention.sink = true;
  run.model.attention.score_cap = 5;
  run.model.logit_cap = 5;
  run.training.z_loss = 1e-3;
  runs.emplace_back("documents with ALiBi, a window, a sink, caps and z-loss", run);
  run = SmallTextRun(10);
  run.model.attention.kv_heads = 1;
  run.model.attention.head_size = 6;
  run.model.attention.qk_norm.kind = QkNormKind::kRms;
  run.model.attention.value_residual = ValueResidual::kLearned;
  run.model.norm.kind = NormKind::kDyt;
  run.model.embedding_norm = true;
  run.model.update_gain = UpdateGain::kScalar;
  run.model.update_gain_start = 0.5;
  runs.emplace_back("text with shared heads, a mix of values and Dynamic Tanh", run);
  for (auto& [name, one] : runs) {
    one.training.checkpoints = {0, 13, 17};
    one.evaluation.every = 10;
  }
  return runs;
}

// The output of a run, as exact text.
struct RunOutput {
  std::vector<std::string> points;
  std::vector<std::string> checkpoints;
  std::string state;
  Outcome outcome = Outcome::kTraining;
  uint32_t step = 0;

  bool operator==(const RunOutput&) const = default;
};

// Adds the output of an Advance to that of earlier ones.
inline void AddOutput(RunProgress progress, RunOutput* output) {
  for (std::string& point : Exactly(progress.points)) output->points.push_back(std::move(point));
  for (Checkpoint& checkpoint : progress.checkpoints) {
    output->checkpoints.push_back(std::move(checkpoint.safetensors));
  }
  output->outcome = progress.outcome;
  output->step = progress.step;
}

// Advances to the end by calls of `steps` updates.
inline RunOutput TrainBy(uint32_t steps, Trainer& trainer) {
  RunOutput output;
  while (output.outcome == Outcome::kTraining) AddOutput(Advance(trainer, steps), &output);
  output.state = *trainer.ExportState();
  return output;
}

// Trains until update `at`, then in another trainer from the exported state.
inline RunOutput TrainResumed(uint32_t at, const RunConfig& run, TrainerMaker make) {
  const auto before = make(run), after = make(run);
  RunOutput output;
  AddOutput(Advance(*before, at), &output);
  EXPECT_TRUE(after->ImportState(*before->ExportState()).ok());
  while (output.outcome == Outcome::kTraining) AddOutput(Advance(*after, 1000), &output);
  output.state = *after->ExportState();
  return output;
}

// Returns a run whose update 13 can't be made: its learning rate is infinite in float32 before.
inline RunConfig DivergingRun() {
  RunConfig run = SmallTextRun(6);
  run.training.optimizer.kind = OptimizerKind::kSgd;
  run.training.optimizer.learning_rate = 1e3;
  run.training.ema = 0.5;
  return run;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_DEVICE_RUNS_H_
