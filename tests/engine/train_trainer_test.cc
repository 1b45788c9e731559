// The trainer as its callers see it: points, checkpoints, resuming, ends of runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "server/engine/data/batches.h"
#include "server/engine/layout.h"
#include "server/engine/safetensors.h"
#include "server/engine/trainer.h"
#include "server/spec/estimate.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Trains the run as a whole, and in parts of seven steps, each by a trainer of its own.
void ExpectTheSameWhenMoved(RunConfig run) {
  run.training.clip = 0.5;
  run.training.checkpoints = {0, 14};
  const auto straight = MakeTrainer({run});
  const RunProgress whole = AdvanceOne(*straight, 1000);
  EXPECT_EQ(whole.outcome, Outcome::kDone);

  auto moving = MakeTrainer({run});
  RunProgress parts;
  while (parts.outcome == Outcome::kTraining) {
    RunProgress part = AdvanceOne(*moving, 7);
    parts.outcome = part.outcome;
    parts.step = part.step;
    std::move(part.points.begin(), part.points.end(), std::back_inserter(parts.points));
    std::move(part.checkpoints.begin(), part.checkpoints.end(),
              std::back_inserter(parts.checkpoints));
    const absl::StatusOr<std::string> state = moving->ExportState(0);
    ASSERT_TRUE(state.ok()) << state.status();
    moving = MakeTrainer({run});
    ASSERT_TRUE(moving->ImportState(0, *state).ok());
  }
  EXPECT_EQ(Exactly(parts.points), Exactly(whole.points));
  ASSERT_EQ(parts.checkpoints.size(), 3u);
  ASSERT_EQ(whole.checkpoints.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parts.checkpoints[i].step, whole.checkpoints[i].step);
    EXPECT_EQ(parts.checkpoints[i].safetensors, whole.checkpoints[i].safetensors);
  }
  EXPECT_EQ(*moving->ExportState(0), *straight->ExportState(0));
}

using MakeRun = RunConfig (*)(uint32_t seed);

class ResumeTest : public testing::TestWithParam<std::tuple<MakeRun, OptimizerKind, Precision>> {};

TEST_P(ResumeTest, ContinuesBitForBitWhenMovedEverySevenSteps) {
  const auto [make_run, optimizer, precision] = GetParam();
  RunConfig run = make_run(3);
  run.training.optimizer.kind = optimizer;
  run.training.optimizer.momentum = 0.9;
  run.precision = precision;
  ExpectTheSameWhenMoved(run);
}

class ResumeOptionsTest
    : public testing::TestWithParam<std::tuple<OptimizerKind, void (*)(TrainingConfig*)>> {};

TEST_P(ResumeOptionsTest, ContinuesBitForBitWhenMovedEverySevenSteps) {
  const auto [optimizer, change] = GetParam();
  RunConfig run = SmallDocumentsRun(3);
  run.model.bias = true;
  run.training.optimizer.kind = optimizer;
  change(&run.training);
  ExpectTheSameWhenMoved(run);
}

INSTANTIATE_TEST_SUITE_P(
    Everything, ResumeOptionsTest,
    testing::Combine(testing::Values(OptimizerKind::kAdamW, OptimizerKind::kSgd),
                     testing::Values([](TrainingConfig* training) { training->accumulation = 2; },
                                     [](TrainingConfig* training) { training->ema = 0.9; },
                                     [](TrainingConfig* training) {
                                       training->label_smoothing = 0.1;
                                     },
                                     [](TrainingConfig* training) {
                                       training->optimizer.weight_decay_on =
                                           WeightDecayOn::kMatrices;
                                     },
                                     [](TrainingConfig* training) {
                                       training->schedule = {ScheduleKind::kOneCycle, 9};
                                     },
                                     [](TrainingConfig* training) {
                                       training->schedule = {ScheduleKind::kInverseSqrt, 9};
                                     })));

INSTANTIATE_TEST_SUITE_P(
    Everything, ResumeTest,
    testing::Combine(
        testing::Values<MakeRun>(SmallDocumentsRun, SmallRecallRun, SmallPairsRun, SmallTextRun),
        testing::Values(OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd),
        testing::Values(Precision::kFloat32, Precision::kFloat64)));

TEST(TorchTrainerTest, EmitsEveryMetricAtItsSteps) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 25;
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 100);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_EQ(progress.step, 25u);
  std::vector<uint32_t> every(25);
  for (uint32_t step = 0; step < 25; ++step) every[step] = step;
  EXPECT_EQ(StepsOf(progress.points, "train/loss"), every);
  EXPECT_EQ(StepsOf(progress.points, "train/gradient_norm"), every);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), ElementsAre(0, 10, 20, 25));
  EXPECT_THAT(StepsOf(progress.points, "eval/accuracy"), ElementsAre(0, 10, 20, 25));
}

TEST(TorchTrainerTest, EvaluatesTheAverageOfItsParameters) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.ema = 0.8;
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 100);
  EXPECT_THAT(StepsOf(progress.points, "eval/ema_loss"), ElementsAre(0, 10, 20, 30));
  const std::vector<double> plain = ValuesOf(progress.points, "eval/loss");
  const std::vector<double> average = ValuesOf(progress.points, "eval/ema_loss");
  EXPECT_EQ(average[0], plain[0]) << "it begins with the initial parameters";
  EXPECT_GT(average[1], plain[1]) << "and follows them";
  EXPECT_LT(average[1], plain[0]);
  run.training.ema = 0;
  std::vector<Point> others = progress.points;
  others.erase(std::remove_if(others.begin(), others.end(),
                              [](const Point& point) { return point.key == "eval/ema_loss"; }),
               others.end());
  EXPECT_EQ(Exactly(others), Exactly(AdvanceOne(*MakeTrainer({run}), 100).points))
      << "an average changes nothing else";
}

TEST(TorchTrainerTest, SmoothsTheTrainingLossOnly) {
  RunConfig run = SmallDocumentsRun(1);
  const RunProgress plain = AdvanceOne(*MakeTrainer({run}), 1);
  run.training.label_smoothing = 0.5;
  const RunProgress smoothed = AdvanceOne(*MakeTrainer({run}), 1);
  EXPECT_EQ(ValuesOf(smoothed.points, "eval/loss"), ValuesOf(plain.points, "eval/loss"));
  EXPECT_NE(ValuesOf(smoothed.points, "train/loss"), ValuesOf(plain.points, "train/loss"));
}

TEST(TorchTrainerTest, CountsTheTokensOfItsUpdates) {
  const RunConfig run = SmallDocumentsRun(1);
  const auto source = MakeBatchSource(run);
  ASSERT_TRUE(source.ok());
  const auto expected = [&](int batches) {
    uint64_t tokens = 0;
    for (int batch = 0; batch < batches; ++batch) {
      const TokenBatch drawn = (*source)->Next();
      for (const int64_t length : drawn.lengths) tokens += static_cast<uint64_t>(length);
    }
    return tokens;
  };
  const auto trainer = MakeTrainer({run});
  EXPECT_EQ(AdvanceOne(*trainer, 11).tokens, expected(11)) << "evaluations at 0 and 10 left out";
  EXPECT_EQ(AdvanceOne(*trainer, 3).tokens, expected(3));
}

TEST(TorchTrainerTest, EvaluatesTheNextStepOnlyWhenItIsVisited) {
  const auto trainer = MakeTrainer({SmallDocumentsRun(1)});
  EXPECT_THAT(StepsOf(AdvanceOne(*trainer, 10).points, "eval/loss"), ElementsAre(0));
  EXPECT_THAT(StepsOf(AdvanceOne(*trainer, 1).points, "eval/loss"), ElementsAre(10));
  EXPECT_THAT(StepsOf(AdvanceOne(*trainer, 9).points, "eval/loss"), ElementsAre());
}

TEST(TorchTrainerTest, OnlyEvaluatesARunOfNoSteps) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 0;
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 1);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), ElementsAre(0));
  EXPECT_THAT(StepsOf(progress.points, "train/loss"), ElementsAre());
  EXPECT_EQ(progress.checkpoints.size(), 1u);
}

TEST(TorchTrainerTest, TrainsWithoutEvaluationWhenNothingIsHeldOut) {
  RunConfig run = SmallDocumentsRun(1);
  std::get<DocumentsTask>(run.task).held_out = 0;
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 100);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), ElementsAre());
}

TEST(TorchTrainerTest, LearnsRecall) {
  RunConfig run = SmallRecallRun(1);
  run.training.steps = 300;
  run.training.optimizer.learning_rate = 0.01;
  run.evaluation.every = 300;
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 300);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_GT(ValuesOf(progress.points, "eval/accuracy").back(), 0.9);
  EXPECT_LT(ValuesOf(progress.points, "eval/loss").back(), 0.5);
}

TEST(TorchTrainerTest, StopsBeforeAnUpdateWhenToldTo) {
  const auto trainer = MakeTrainer({SmallDocumentsRun(1)});
  const auto progress = trainer->Advance(5, [] { return true; });
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->front().step, 0u);
  EXPECT_EQ(progress->front().outcome, Outcome::kTraining);
}

// Advances by one piece at a time: a batch of an evaluation, or what follows its last one and an
// update. `between` may replace the trainer.
RunProgress AdvanceByPieces(std::unique_ptr<Trainer>& trainer,
                            const std::function<void(const RunProgress&)>& between) {
  RunProgress whole;
  while (whole.outcome == Outcome::kTraining) {
    int asked = 0;
    auto piece = trainer->Advance(1000, [&] { return ++asked > 1; });
    EXPECT_TRUE(piece.ok()) << piece.status();
    RunProgress& part = piece->front();
    EXPECT_LE(part.step, whole.step + 1);
    EXPECT_TRUE(part.step > whole.step || part.evaluated > 0 || !part.points.empty());
    between(part);
    whole.step = part.step;
    whole.outcome = part.outcome;
    whole.evaluated = std::max(whole.evaluated, part.evaluated);
    std::move(part.points.begin(), part.points.end(), std::back_inserter(whole.points));
  }
  return whole;
}

TEST(TorchTrainerTest, LeavesAnEvaluationBetweenBatchesAndGoesOnWithTheSameBits) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.ema = 0.8;  // two passes an evaluation
  const auto straight = MakeTrainer({run});
  const RunProgress whole = AdvanceOne(*straight, 1000);
  EXPECT_EQ(whole.outcome, Outcome::kDone);
  auto trainer = MakeTrainer({run});
  int left = 0;
  const RunProgress pieces = AdvanceByPieces(
      trainer, [&](const RunProgress& part) { left += part.evaluated > 0 && part.points.empty(); });
  EXPECT_GT(left, 4) << "once an evaluation at least";
  EXPECT_EQ(Exactly(pieces.points), Exactly(whole.points));
  EXPECT_EQ(*trainer->ExportState(0), *straight->ExportState(0));
}

TEST(TorchTrainerTest, RepeatsAnEvaluationThatWasLeftWhenItsStateIsTakenUpElsewhere) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.ema = 0.8;
  const auto straight = MakeTrainer({run});
  const RunProgress whole = AdvanceOne(*straight, 1000);
  auto trainer = MakeTrainer({run});
  std::set<uint32_t> moved;
  const RunProgress pieces = AdvanceByPieces(trainer, [&](const RunProgress& part) {
    const bool left = part.evaluated > 0 && part.points.empty();
    if (!left || !moved.insert(part.step).second) return;
    const absl::StatusOr<std::string> state = trainer->ExportState(0);
    ASSERT_TRUE(state.ok()) << state.status();
    trainer = MakeTrainer({run});
    ASSERT_TRUE(trainer->ImportState(0, *state).ok());
  });
  EXPECT_THAT(moved, ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(Exactly(pieces.points), Exactly(whole.points));
  EXPECT_EQ(*trainer->ExportState(0), *straight->ExportState(0));
}

// The evaluation with which a diverged run ends, where none is due otherwise.
TEST(TorchTrainerTest, ReportsADivergedStepOnceItsEvaluationIsComplete) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.optimizer = {OptimizerKind::kSgd, 1e30};
  run.training.schedule.kind = ScheduleKind::kConstant;
  const RunProgress whole = AdvanceOne(*MakeTrainer({run}), 100);
  ASSERT_EQ(whole.outcome, Outcome::kDiverged);
  ASSERT_NE(whole.step % run.evaluation.every, 0u);
  auto trainer = MakeTrainer({run});
  std::set<uint32_t> moved;
  const RunProgress pieces = AdvanceByPieces(trainer, [&](const RunProgress& part) {
    const bool left = part.step == whole.step && part.points.empty() && part.evaluated > 0;
    if (!left || !moved.insert(part.step).second) return;
    const absl::StatusOr<std::string> state = trainer->ExportState(0);
    ASSERT_TRUE(state.ok()) << state.status();
    trainer = MakeTrainer({run});
    ASSERT_TRUE(trainer->ImportState(0, *state).ok());
  });
  EXPECT_THAT(moved, ElementsAre(whole.step));
  EXPECT_EQ(pieces.outcome, Outcome::kDiverged);
  EXPECT_EQ(Exactly(pieces.points), Exactly(whole.points));
}

TEST(TorchTrainerTest, EndsDivergedWhereTheLossIsNoNumber) {
  RunConfig run = SmallRecallRun(1);
  run.training.optimizer = {OptimizerKind::kSgd, 1e30};
  run.training.schedule.kind = ScheduleKind::kConstant;
  const auto trainer = MakeTrainer({run});
  const RunProgress progress = AdvanceOne(*trainer, 100);
  ASSERT_EQ(progress.outcome, Outcome::kDiverged);
  EXPECT_GT(progress.step, 0u);
  EXPECT_LT(progress.step, 30u);
  EXPECT_EQ(StepsOf(progress.points, "train/loss").back(), progress.step);
  EXPECT_FALSE(std::isfinite(ValuesOf(progress.points, "train/loss").back()));
  EXPECT_EQ(StepsOf(progress.points, "train/gradient_norm").back(), progress.step - 1);
  EXPECT_EQ(StepsOf(progress.points, "eval/loss").back(), progress.step);
  ASSERT_FALSE(std::isfinite(ValuesOf(progress.points, "eval/loss").back()));
  EXPECT_TRUE(std::isnan(ValuesOf(progress.points, "eval/accuracy").back()));
  ASSERT_EQ(progress.checkpoints.size(), 1u);
  EXPECT_EQ(progress.checkpoints.front().step, progress.step);
  EXPECT_THAT(AdvanceOne(*trainer, 10).points, ElementsAre());
}

TEST(TorchTrainerTest, EndsDivergedBeforeAnUpdateByAGradientThatIsNoNumber) {
  const RunConfig run = SteepRun(1);
  const auto trainer = MakeTrainer({run});
  AdvanceOne(*trainer, 5);
  const std::string steep = Steepened(run, *trainer->ExportState(0));
  ASSERT_TRUE(trainer->ImportState(0, steep).ok());
  const RunProgress progress = AdvanceOne(*trainer, 100);
  ASSERT_EQ(progress.outcome, Outcome::kDiverged);
  EXPECT_EQ(progress.step, 5u);
  EXPECT_EQ(StepsOf(progress.points, "train/loss"), std::vector<uint32_t>{5});
  EXPECT_TRUE(std::isfinite(ValuesOf(progress.points, "train/loss").back()));
  EXPECT_EQ(StepsOf(progress.points, "train/gradient_norm"), std::vector<uint32_t>{5});
  EXPECT_FALSE(std::isfinite(ValuesOf(progress.points, "train/gradient_norm").back()));
  EXPECT_TRUE(std::isfinite(ValuesOf(progress.points, "eval/loss").back()));
  const std::string ended = *trainer->ExportState(0);
  const auto before = ParseSafetensors(steep), after = ParseSafetensors(ended);
  EXPECT_EQ(after->metadata.at("outcome"), "diverged");
  for (const char* tensor : {"parameters", "optimizer.first_moment", "optimizer.second_moment"}) {
    EXPECT_EQ(after->Find(tensor)->bytes, before->Find(tensor)->bytes) << tensor;
  }
  ASSERT_EQ(progress.checkpoints.size(), 1u);
  EXPECT_EQ(progress.checkpoints.front().safetensors, *trainer->ExportCheckpoint(0));
}

TEST(TorchTrainerTest, EndsDivergedWhenWorseThanGuessingAndThanItBegan) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 3;
  run.training.optimizer = {OptimizerKind::kSgd, 10};
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 100);
  const std::vector<double> losses = ValuesOf(progress.points, "eval/loss");
  ASSERT_TRUE(std::isfinite(losses.back()));
  ASSERT_GT(losses.back(), std::log(7));
  ASSERT_GT(losses.back(), losses.front());
  EXPECT_EQ(progress.outcome, Outcome::kDiverged);
  EXPECT_EQ(progress.step, 3u);
}

TEST(TorchTrainerTest, WritesCheckpointsThatDescribeTheirModel) {
  RunConfig run = SmallDocumentsRun(1);
  run.model.norm.feed_forward = false;
  run.training.checkpoints = {5};
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 10);
  ASSERT_EQ(progress.checkpoints.size(), 1u);
  const auto file = ParseSafetensors(progress.checkpoints.front().safetensors);
  ASSERT_TRUE(file.ok()) << file.status();
  const ParameterLayout layout = MakeLayout(run.model);
  ASSERT_EQ(file->tensors.size(), layout.parameters.size());
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    EXPECT_EQ(file->tensors[i].name, layout.parameters[i].name);
    EXPECT_EQ(file->tensors[i].shape, layout.parameters[i].shape);
  }
  EXPECT_EQ(file->metadata.at("step"), "5");
  EXPECT_EQ(file->metadata.at("trainer"), "torch");
  EXPECT_EQ(file->metadata.at("numerics_version"), std::to_string(kNumericsVersion));
  const auto model = nlohmann::json::parse(file->metadata.at("model"));
  EXPECT_EQ(model["norm_sites"]["block.1.attention.norm"], "rms");
  EXPECT_EQ(model["norm_sites"]["block.1.feed_forward.norm"], "none");
  EXPECT_EQ(model["norm_sites"]["final_norm"], "rms");
  EXPECT_EQ(model["width"], 8);
  const auto vocabulary = nlohmann::json::parse(file->metadata.at("vocabulary"));
  EXPECT_EQ(vocabulary["characters"], nlohmann::json({"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(vocabulary["bos"], 6);
}

TEST(TorchTrainerTest, SharesInitialWeightsBetweenVariantsByName) {
  RunConfig pre = SmallDocumentsRun(4);
  RunConfig none = pre;
  none.model.norm.placement = NormPlacement::kNone;
  none.model.layers = 1;
  const std::string first = *MakeTrainer({pre})->ExportCheckpoint(0);
  const std::string second = *MakeTrainer({none})->ExportCheckpoint(0);
  const auto a = ParseSafetensors(first), b = ParseSafetensors(second);
  for (const ParameterInfo& parameter : MakeLayout(none.model).parameters) {
    if (parameter.name == "final_norm.weight") continue;
    EXPECT_EQ(a->Find(parameter.name)->bytes, b->Find(parameter.name)->bytes) << parameter.name;
  }
}

// A state with one metadata entry replaced.
std::string WithMetadata(const std::string& state, const std::string& key,
                         const std::string& value) {
  const auto file = ParseSafetensors(state);
  std::map<std::string, std::string> metadata = file->metadata;
  metadata[key] = value;
  return *WriteSafetensors(file->tensors, metadata);
}

TEST(ImportStateTest, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto trainer = MakeTrainer({SmallDocumentsRun(1)});
  AdvanceOne(*trainer, 3);
  const std::string before = *trainer->ExportState(0);
  RunConfig other = SmallDocumentsRun(1);
  other.model.hidden = 24;
  const std::string wider = *MakeTrainer({other})->ExportState(0);
  const std::string seed = *MakeTrainer({SmallDocumentsRun(2)})->ExportState(0);

  const auto import = [&](const std::string& state) { return trainer->ImportState(0, state); };
  const absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;
  const absl::StatusCode kMalformed = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(import(WithMetadata(before, "trainer", "native")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "numerics_version", "0")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "environment", "torch 1.0.0, AVX")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "optimizer", "sgd")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "precision", "float64")).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "format", "ablate.checkpoint")).code(), kRefused);
  EXPECT_EQ(import(wider).code(), kRefused);
  EXPECT_EQ(import(seed).code(), kRefused);
  EXPECT_EQ(import(WithMetadata(before, "step", "31")).code(), kMalformed);
  EXPECT_EQ(import(WithMetadata(before, "outcome", "unknown")).code(), kMalformed);
  EXPECT_EQ(import(before.substr(0, before.size() - 1)).code(), kMalformed);
  EXPECT_EQ(import("").code(), kMalformed);
  EXPECT_EQ(*trainer->ExportState(0), before);
  EXPECT_THAT(std::string(trainer->ImportState(1, before).message()), HasSubstr("run 1"));
}

TEST(MakeTorchTrainerTest, NamesTheFieldThatCannotBe) {
  const auto message = [](const auto& change) {
    RunConfig run = SmallDocumentsRun(1);
    change(run);
    return std::string(MakeTorchTrainer({run}).status().message());
  };
  EXPECT_THAT(message([](RunConfig& run) { run.model.heads = 3; }),
              HasSubstr("model.width is 8, but must be divisible by model.heads, 3"));
  EXPECT_THAT(message([](RunConfig& run) { run.model.vocabulary = 9; }),
              HasSubstr("model.vocabulary is 9, but the task has 7 tokens"));
  EXPECT_THAT(message([](RunConfig& run) { run.training.optimizer.learning_rate = NAN; }),
              HasSubstr("training.optimizer.learning_rate is nan"));
  EXPECT_THAT(message([](RunConfig& run) { run.training.optimizer.beta2 = 1; }),
              HasSubstr("training.optimizer.beta2 is 1, but must be at least 0 and below 1"));
  EXPECT_THAT(message([](RunConfig& run) { run.training.ema = 1; }),
              HasSubstr("training.ema is 1, but must be at least 0 and below 1"));
  EXPECT_THAT(message([](RunConfig& run) { run.training.label_smoothing = -0.1; }),
              HasSubstr("training.label_smoothing is -0.1, but must be"));
  EXPECT_THAT(message([](RunConfig& run) { run.training.accumulation = 0; }),
              HasSubstr("training.accumulation is 0, but must be"));
  EXPECT_THAT(message([](RunConfig& run) { run.training.accumulation = 3; }),
              HasSubstr("training.batch is 2, but must be divisible by training.accumulation, 3"));
  EXPECT_THAT(message([](RunConfig& run) { run.evaluation.every = 0; }),
              HasSubstr("evaluation.every is 0, but must be"));
  EXPECT_THAT(message([](RunConfig& run) {
                run.model.tied_head = true;
                run.model.head_bias = true;
              }),
              HasSubstr("model.head_bias"));
  EXPECT_THAT(
      message([](RunConfig& run) { std::get<DocumentsTask>(run.task).documents = nullptr; }),
      HasSubstr("task: its documents were not read"));
  EXPECT_THAT(std::string(MakeTorchTrainer({}).status().message()), HasSubstr("no run"));
  RunConfig wider = SmallDocumentsRun(2);
  wider.model.hidden = 32;
  EXPECT_THAT(std::string(MakeTorchTrainer({SmallDocumentsRun(1), wider}).status().message()),
              HasSubstr("run 1 of the stack differs from run 0 in model"));
  RunConfig masked = SmallDocumentsRun(2);
  masked.training.optimizer.weight_decay_on = WeightDecayOn::kMatrices;
  EXPECT_THAT(std::string(MakeTorchTrainer({SmallDocumentsRun(1), masked}).status().message()),
              HasSubstr("run 1 of the stack differs from run 0 in training"));
}

TEST(ResumeStateTest, IsAsLargeAsEstimatedForEveryOptimizer) {
  RunConfig run = SmallRecallRun(1);
  run.model.width = 64;
  run.model.hidden = 256;
  const uint64_t parameters = static_cast<uint64_t>(MakeLayout(run.model).size);
  ASSERT_GT(parameters, 40'000u) << "so that a slot more or less is seen";
  for (const OptimizerKind kind :
       {OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    for (const double share : {0., .9}) {
      run.training.optimizer.kind = kind;
      run.training.optimizer.momentum = share;
      run.training.ema = share;
      const auto trainer = MakeTrainer({run});
      AdvanceOne(*trainer, 2);
      const absl::StatusOr<std::string> state = trainer->ExportState(0);
      ASSERT_TRUE(state.ok()) << state.status();
      const double estimate = static_cast<double>(spec::ResumeBytes(run.training, {parameters}));
      EXPECT_NEAR(static_cast<double>(state->size()), estimate,
                  2. * static_cast<double>(parameters))
          << OptimizerSlots(run.training).size() << " slots, momentum and ema " << share;
    }
  }
}

// A run under a schedule that knows no end, of so many updates.
RunConfig GrowingRun(bool documents, OptimizerKind optimizer, uint32_t steps) {
  RunConfig run = documents ? SmallDocumentsRun(5) : SmallRecallRun(5);
  run.training.schedule.kind = ScheduleKind::kConstant;
  run.training.schedule.warmup = 4;
  run.training.optimizer.kind = optimizer;
  run.training.optimizer.momentum = 0.9;
  run.training.steps = steps;
  run.training.checkpoints = {0, 10, 17};
  return run;
}

class GrowTest : public testing::TestWithParam<std::tuple<bool, OptimizerKind, uint32_t>> {};

TEST_P(GrowTest, HasTheNumbersOfARunThatWasTrainedAtOnce) {
  const auto [documents, optimizer, ended] = GetParam();
  const auto straight = MakeTrainer({GrowingRun(documents, optimizer, 40)});
  const RunProgress whole = AdvanceOne(*straight, 1000);

  const auto shorter = MakeTrainer({GrowingRun(documents, optimizer, ended)});
  RunProgress first = AdvanceOne(*shorter, 1000);
  ASSERT_EQ(first.outcome, Outcome::kDone);
  const auto longer = MakeTrainer({GrowingRun(documents, optimizer, 40)});
  ASSERT_TRUE(longer->ImportState(0, *shorter->ExportState(0)).ok());
  RunProgress rest = AdvanceOne(*longer, 1000);
  EXPECT_EQ(rest.outcome, Outcome::kDone);
  EXPECT_EQ(rest.step, 40u);

  // What the shorter run did at its end is its own.
  std::vector<Point> points;
  for (const Point& point : first.points) {
    if (point.step < ended) points.push_back(point);
  }
  points.insert(points.end(), rest.points.begin(), rest.points.end());
  EXPECT_EQ(Exactly(points), Exactly(whole.points));
  std::vector<Checkpoint> checkpoints;
  for (Checkpoint& checkpoint : first.checkpoints) {
    if (checkpoint.step < ended) checkpoints.push_back(std::move(checkpoint));
  }
  std::move(rest.checkpoints.begin(), rest.checkpoints.end(), std::back_inserter(checkpoints));
  ASSERT_EQ(checkpoints.size(), whole.checkpoints.size());
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    EXPECT_EQ(checkpoints[i].step, whole.checkpoints[i].step);
    EXPECT_EQ(checkpoints[i].safetensors, whole.checkpoints[i].safetensors);
  }
  EXPECT_EQ(*longer->ExportState(0), *straight->ExportState(0));
}

// Ends that meet an evaluation (10 and 20), a checkpoint (10 and 17), neither, or the warm-up.
INSTANTIATE_TEST_SUITE_P(
    Everything, GrowTest,
    testing::Combine(testing::Bool(), testing::Values(OptimizerKind::kAdamW, OptimizerKind::kSgd),
                     testing::Values(3, 10, 17, 20, 23)));

TEST(ImportStateTest, EndsARunThatDivergedOrIsDoneWhereItIs) {
  const RunConfig run = GrowingRun(false, OptimizerKind::kAdamW, 20);
  const auto shorter = MakeTrainer({run});
  AdvanceOne(*shorter, 1000);
  const std::string state = *shorter->ExportState(0);
  const auto same = MakeTrainer({run});
  ASSERT_TRUE(same->ImportState(0, state).ok());
  const RunProgress done = AdvanceOne(*same, 1000);
  EXPECT_EQ(done.outcome, Outcome::kDone);
  EXPECT_TRUE(done.points.empty());
  const auto longer = MakeTrainer({GrowingRun(false, OptimizerKind::kAdamW, 40)});
  ASSERT_TRUE(longer->ImportState(0, WithMetadata(state, "outcome", "diverged")).ok());
  const RunProgress diverged = AdvanceOne(*longer, 1000);
  EXPECT_EQ(diverged.outcome, Outcome::kDiverged);
  EXPECT_EQ(diverged.step, 20u);
  EXPECT_TRUE(diverged.points.empty());
}

TEST(TorchTrainerTest, TrainsTwoHundredBlocks) {
  RunConfig run = SmallTextRun(1);
  run.model.layers = 200;
  run.training.steps = 2;
  run.evaluation.batches = 1;
  const RunProgress progress = AdvanceOne(*MakeTrainer({run}), 10);
  EXPECT_EQ(progress.step, 2u);
  for (const Point& point : progress.points) EXPECT_TRUE(std::isfinite(point.value)) << point.key;
}

TEST(TorchTrainerTest, RefusesPartsOfOnePositionForBatchNorm) {
  RunConfig run = SmallTextRun(1);
  run.model.norm.kind = NormKind::kBatch;
  run.model.context = 1;
  run.training.batch = run.training.accumulation = 4;
  EXPECT_THAT(std::string(MakeTorchTrainer({run}).status().message()),
              HasSubstr("a batch of one position in all has no variance"));
  run.training.accumulation = 2;
  EXPECT_TRUE(MakeTorchTrainer({run}).ok());
}

TEST(TorchTrainerTest, RefusesNormsThatAreNotDefined) {
  RunConfig run = SmallTextRun(1);
  run.model.norm.kind = NormKind::kRms;
  run.model.norm.backward = NormBackward::kCenterScale;
  EXPECT_THAT(std::string(MakeTorchTrainer({run}).status().message()),
              HasSubstr("model.norm.backward is center_scale"));
  run.model.norm.backward = NormBackward::kExact;
  run.model.norm.deviation = NormDeviation::kUnbiasedEpsOutside;
  EXPECT_THAT(std::string(MakeTorchTrainer({run}).status().message()),
              HasSubstr("model.norm.deviation is unbiased_eps_outside"));
}

TEST(TorchTrainerTest, NeedsNoDivisorOfTheWidthWithoutAttention) {
  RunConfig run = SmallTextRun(1);
  run.model.heads = 3;
  EXPECT_FALSE(MakeTorchTrainer({run}).ok());
  run.model.attention.kind = AttentionKind::kNone;
  EXPECT_TRUE(MakeTorchTrainer({run}).ok());
}

}  // namespace
}  // namespace ablate::engine
