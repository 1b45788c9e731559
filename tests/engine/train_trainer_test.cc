// Tests the trainer as its callers see it: points, checkpoints, ends of runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "base/tokenizer/encoder.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/core/layout.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {
namespace {

using testing::ElementsAre;

OptimizerConfig Sgd(double learning_rate) {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerKind::kSgd;
  optimizer.learning_rate = learning_rate;
  return optimizer;
}

TEST(TorchTrainerTest, EmitsEveryMetricAtItsSteps) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 25;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 100);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_EQ(progress.step, 25u);
  std::vector<uint32_t> every(25);
  for (uint32_t step = 0; step < 25; ++step) every[step] = step;
  EXPECT_EQ(StepsOf(progress.points, "train/loss"), every);
  EXPECT_EQ(StepsOf(progress.points, "train/gradient_norm"), every);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), ElementsAre(0, 10, 20, 25));
  EXPECT_THAT(StepsOf(progress.points, "eval/accuracy"), ElementsAre(0, 10, 20, 25));
}

TEST(TorchTrainerTest, EvaluatesItsEmaWeights) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.ema = 0.8;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 100);
  EXPECT_THAT(StepsOf(progress.points, "eval/ema_loss"), ElementsAre(0, 10, 20, 30));
  const std::vector<double> plain = ValuesOf(progress.points, "eval/loss");
  const std::vector<double> ema = ValuesOf(progress.points, "eval/ema_loss");
  EXPECT_EQ(ema[0], plain[0]) << "it begins with the initial parameters";
  EXPECT_GT(ema[1], plain[1]) << "and follows them";
  EXPECT_LT(ema[1], plain[0]);
  run.training.ema = 0;
  std::vector<Point> others = progress.points;
  others.erase(std::remove_if(others.begin(), others.end(),
                              [](const Point& point) { return point.key == "eval/ema_loss"; }),
               others.end());
  EXPECT_EQ(Exactly(others), Exactly(Advance(*MustMakeTrainer(run), 100).points))
      << "EMA changes nothing else";
}

TEST(TorchTrainerTest, SmoothsTheTrainingLossOnly) {
  RunConfig run = SmallDocumentsRun(1);
  const RunProgress plain = Advance(*MustMakeTrainer(run), 1);
  run.training.label_smoothing = 0.5;
  const RunProgress smoothed = Advance(*MustMakeTrainer(run), 1);
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
  const auto trainer = MustMakeTrainer(run);
  EXPECT_EQ(Advance(*trainer, 11).tokens, expected(11)) << "evaluations at 0 and 10 left out";
  EXPECT_EQ(Advance(*trainer, 3).tokens, expected(3));
}

TEST(TorchTrainerTest, EvaluatesTheNextStepOnlyWhenItIsVisited) {
  const auto trainer = MustMakeTrainer(SmallDocumentsRun(1));
  EXPECT_THAT(StepsOf(Advance(*trainer, 10).points, "eval/loss"), ElementsAre(0));
  EXPECT_THAT(StepsOf(Advance(*trainer, 1).points, "eval/loss"), ElementsAre(10));
  EXPECT_THAT(StepsOf(Advance(*trainer, 9).points, "eval/loss"), ElementsAre());
}

TEST(TorchTrainerTest, OnlyEvaluatesARunOfNoSteps) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 0;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 1);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), ElementsAre(0));
  EXPECT_THAT(StepsOf(progress.points, "train/loss"), ElementsAre());
  EXPECT_EQ(progress.checkpoints.size(), 1u);
}

TEST(TorchTrainerTest, TrainsWithoutEvaluationWhenNothingIsHeldOut) {
  RunConfig run = SmallDocumentsRun(1);
  std::get<DocumentsTask>(run.task).held_out = 0;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 100);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_THAT(StepsOf(progress.points, "eval/loss"), ElementsAre());
}

TEST(TorchTrainerTest, LearnsRecall) {
  RunConfig run = SmallRecallRun(1);
  run.training.steps = 300;
  run.training.optimizer.learning_rate = 0.01;
  run.evaluation.every = 300;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 300);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  EXPECT_GT(ValuesOf(progress.points, "eval/accuracy").back(), 0.9);
  EXPECT_LT(ValuesOf(progress.points, "eval/loss").back(), 0.5);
}

TEST(TorchTrainerTest, StopsBeforeAnUpdateWhenToldTo) {
  const auto trainer = MustMakeTrainer(SmallDocumentsRun(1));
  const auto progress = trainer->Advance(5, [] { return true; });
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->step, 0u);
  EXPECT_EQ(progress->outcome, Outcome::kTraining);
}

// Advances by one piece at a time: an evaluation batch, or what follows the last one and an update.
// `between` may replace the trainer.
RunProgress AdvanceByPieces(std::unique_ptr<Trainer>& trainer,
                            const std::function<void(const RunProgress&)>& between) {
  RunProgress whole;
  while (whole.outcome == Outcome::kTraining) {
    int asked = 0;
    auto piece = trainer->Advance(1000, [&] { return ++asked > 1; });
    EXPECT_TRUE(piece.ok()) << piece.status();
    RunProgress& part = *piece;
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

// The same, but a new trainer takes over the state of each half-finished evaluation, once per step
// and from step `first` on. Adds the steps to `moved`.
RunProgress AdvanceElsewhere(std::unique_ptr<Trainer>& trainer, const RunConfig& run,
                             uint32_t first, std::set<uint32_t>& moved) {
  return AdvanceByPieces(trainer, [&](const RunProgress& part) {
    const bool left = part.step >= first && part.evaluated > 0 && part.points.empty();
    if (!left || !moved.insert(part.step).second) return;
    const absl::StatusOr<std::string> state = trainer->ExportState();
    ASSERT_TRUE(state.ok()) << state.status();
    trainer = MustMakeTrainer(run);
    ASSERT_TRUE(trainer->ImportState(*state).ok());
  });
}

TEST(TorchTrainerTest, LeavesAnEvaluationBetweenBatchesAndGoesOnWithTheSameBits) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.ema = 0.8;  // two passes per evaluation
  const auto straight = MustMakeTrainer(run);
  const RunProgress whole = Advance(*straight, 1000);
  EXPECT_EQ(whole.outcome, Outcome::kDone);
  auto trainer = MustMakeTrainer(run);
  int left = 0;
  const RunProgress pieces = AdvanceByPieces(
      trainer, [&](const RunProgress& part) { left += part.evaluated > 0 && part.points.empty(); });
  EXPECT_GT(left, 4) << "once an evaluation at least";
  EXPECT_EQ(Exactly(pieces.points), Exactly(whole.points));
  EXPECT_EQ(*trainer->ExportState(), *straight->ExportState());
}

TEST(TorchTrainerTest, RepeatsAnEvaluationThatWasLeftWhenItsStateIsTakenUpElsewhere) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.ema = 0.8;
  const auto straight = MustMakeTrainer(run);
  const RunProgress whole = Advance(*straight, 1000);
  auto trainer = MustMakeTrainer(run);
  std::set<uint32_t> moved;
  const RunProgress pieces = AdvanceElsewhere(trainer, run, 0, moved);
  EXPECT_THAT(moved, ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(Exactly(pieces.points), Exactly(whole.points));
  EXPECT_EQ(*trainer->ExportState(), *straight->ExportState());
}

// Covers the final evaluation of a diverged run at a step without a regular one.
TEST(TorchTrainerTest, ReportsADivergedStepOnceItsEvaluationIsComplete) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.optimizer = Sgd(1e30);
  run.training.schedule.kind = ScheduleKind::kConstant;
  const RunProgress whole = Advance(*MustMakeTrainer(run), 100);
  ASSERT_EQ(whole.outcome, Outcome::kDiverged);
  ASSERT_NE(whole.step % run.evaluation.every, 0u);
  auto trainer = MustMakeTrainer(run);
  std::set<uint32_t> moved;
  const RunProgress pieces = AdvanceElsewhere(trainer, run, whole.step, moved);
  EXPECT_THAT(moved, ElementsAre(whole.step));
  EXPECT_EQ(pieces.outcome, Outcome::kDiverged);
  EXPECT_EQ(Exactly(pieces.points), Exactly(whole.points));
}

TEST(TorchTrainerTest, EndsDivergedWhereTheLossIsNoNumber) {
  RunConfig run = SmallRecallRun(1);
  run.training.optimizer = Sgd(1e30);
  run.training.schedule.kind = ScheduleKind::kConstant;
  const auto trainer = MustMakeTrainer(run);
  const RunProgress progress = Advance(*trainer, 100);
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
  EXPECT_THAT(Advance(*trainer, 10).points, ElementsAre());
}

TEST(TorchTrainerTest, EndsDivergedBeforeAnUpdateByAGradientThatIsNoNumber) {
  const RunConfig run = SteepRun(1);
  const auto trainer = MustMakeTrainer(run);
  Advance(*trainer, 5);
  const std::string steep = Steepened(run, *trainer->ExportState());
  ASSERT_TRUE(trainer->ImportState(steep).ok());
  const RunProgress progress = Advance(*trainer, 100);
  ASSERT_EQ(progress.outcome, Outcome::kDiverged);
  EXPECT_EQ(progress.step, 5u);
  EXPECT_EQ(StepsOf(progress.points, "train/loss"), std::vector<uint32_t>{5});
  EXPECT_TRUE(std::isfinite(ValuesOf(progress.points, "train/loss").back()));
  EXPECT_EQ(StepsOf(progress.points, "train/gradient_norm"), std::vector<uint32_t>{5});
  EXPECT_FALSE(std::isfinite(ValuesOf(progress.points, "train/gradient_norm").back()));
  EXPECT_TRUE(std::isfinite(ValuesOf(progress.points, "eval/loss").back()));
  const std::string ended = *trainer->ExportState();
  const auto before = ParseSafetensors(steep), after = ParseSafetensors(ended);
  EXPECT_EQ(after->metadata.at("outcome"), "diverged");
  for (const char* tensor : {"parameters", "optimizer.first_moment", "optimizer.second_moment"}) {
    EXPECT_EQ(after->Find(tensor)->bytes, before->Find(tensor)->bytes) << tensor;
  }
  ASSERT_EQ(progress.checkpoints.size(), 1u);
  EXPECT_EQ(progress.checkpoints.front().safetensors, *trainer->ExportCheckpoint());
}

TEST(TorchTrainerTest, EndsDivergedWhenWorseThanGuessingAndThanItBegan) {
  RunConfig run = SmallDocumentsRun(1);
  run.training.steps = 3;
  run.training.optimizer = Sgd(10);
  const RunProgress progress = Advance(*MustMakeTrainer(run), 100);
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
  const RunProgress progress = Advance(*MustMakeTrainer(run), 10);
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
  const std::string first = *MustMakeTrainer(pre)->ExportCheckpoint();
  const std::string second = *MustMakeTrainer(none)->ExportCheckpoint();
  const auto a = ParseSafetensors(first), b = ParseSafetensors(second);
  for (const ParameterInfo& parameter : MakeLayout(none.model).parameters) {
    if (parameter.name == "final_norm.weight") continue;
    EXPECT_EQ(a->Find(parameter.name)->bytes, b->Find(parameter.name)->bytes) << parameter.name;
  }
}

TEST(TorchTrainerTest, TrainsTwoHundredBlocks) {
  RunConfig run = SmallTextRun(1);
  run.model.layers = 200;
  run.training.steps = 2;
  run.evaluation.batches = 1;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 10);
  EXPECT_EQ(progress.step, 2u);
  for (const Point& point : progress.points) EXPECT_TRUE(std::isfinite(point.value)) << point.key;
}

// Returns the run's last checkpoint.
std::string Trained(const RunConfig& run) {
  return Advance(*MustMakeTrainer(run), 100).checkpoints.back().safetensors;
}

TEST(StartFromTest, ContinuesWithTheParametersOfAnotherRun) {
  for (const TrainerKind kind : {TrainerKind::kTorch, TrainerKind::kNative}) {
    RunConfig run = SmallDocumentsRun(3);
    run.training.trainer = kind;
    run.training.ema = 0.9;
    const auto first = MustMakeTrainer(run);
    const RunProgress trained = Advance(*first, 100);
    RunConfig next = run;
    next.training.steps = 0;
    const auto trainer = MustMakeTrainer(next);
    ASSERT_TRUE(trainer->StartFrom(trained.checkpoints.back().safetensors).ok());
    const RunProgress begun = Advance(*trainer, 1);
    const double loss = ValuesOf(begun.points, "eval/loss").at(0);
    EXPECT_EQ(ValuesOf(begun.points, "eval/ema_loss").at(0), loss) << "EMA weights begin equal";
    EXPECT_EQ(loss, ValuesOf(trained.points, "eval/loss").back());
    const auto before = ParseSafetensors(trained.checkpoints.back().safetensors);
    const auto after = ParseSafetensors(begun.checkpoints.back().safetensors);
    for (size_t i = 0; i < before->tensors.size(); ++i) {
      EXPECT_EQ(after->tensors[i].bytes, before->tensors[i].bytes) << before->tensors[i].name;
    }
  }
}

TEST(StartFromTest, TakesTheFirstPositionsOfALongerContext) {
  const RunConfig longer = SmallDocumentsRun(3);
  const std::string checkpoint = Trained(longer);
  RunConfig shorter = longer;
  shorter.model.context = 4;
  shorter.training.steps = 0;
  const auto trainer = MustMakeTrainer(shorter);
  ASSERT_TRUE(trainer->StartFrom(checkpoint).ok());
  const std::string begun = Advance(*trainer, 1).checkpoints.back().safetensors;
  const auto before = ParseSafetensors(checkpoint), after = ParseSafetensors(begun);
  const TensorView* rows = after->Find("position_embedding.weight");
  EXPECT_EQ(rows->bytes,
            before->Find("position_embedding.weight")->bytes.substr(0, rows->bytes.size()));
}

TEST(StartFromTest, RefusesOtherModelsAndOtherCharacters) {
  const RunConfig run = SmallDocumentsRun(3);
  const std::string checkpoint = Trained(run);
  RunConfig wider = run;
  wider.model.hidden = 20;
  EXPECT_EQ(MustMakeTrainer(wider)->StartFrom(checkpoint).message(),
            "the checkpoint has no tensor block.0.feed_forward.up.weight of shape [20, 8]");
  RunConfig other = run;
  other.task = *ReadDocumentsTask("uvw\nxyz\nvyu\n", 1);  // as many characters
  const auto trainer = MustMakeTrainer(other);
  EXPECT_EQ(trainer->StartFrom(checkpoint).message(),
            "its tokens stand for other text than the task's; expected the same characters or "
            "tokenizer");
  EXPECT_FALSE(trainer->StartFrom("no file").ok());
  EXPECT_EQ(Exactly(Advance(*trainer, 3).points),
            Exactly(Advance(*MustMakeTrainer(other), 3).points))
      << "it is as it was";
}

// A tokenizer's <|endoftext|> is one of a text's tokens. A boundary of its own isn't.
TEST(StartFromTest, DocumentsGoOnWithAModelOfATextOfTheSameTokenizer) {
  for (const bool known : {true, false}) {
    const auto encoding =
        tokenizer::SmallTokenizer{{"a b"}, {known ? "<|endoftext|>" : "<|other|>"}}.Make();
    auto text = std::make_shared<TokenizedText>();
    text->encoding = encoding;
    tokenizer::Encoder(encoding).Encode(std::string(300, 'a') + "bab", &text->tokens);
    RunConfig run = SmallDocumentsRun(3);
    run.task = TextTask{true, text, 0.5};
    run.model.vocabulary = 259;
    const std::string checkpoint = Trained(run);
    RunConfig next = run;
    next.task = DocumentsTask{
        true, std::make_shared<const TokenizedDocuments>(*EncodeDocuments("ab\nba\na", encoding)),
        1};
    EXPECT_EQ(MustMakeTrainer(next)->StartFrom(checkpoint).ok(), known);
  }
}

// Tokens that the task lacks never occur.
TEST(StartFromTest, ModelsMayHaveMoreTokensThanTheTask) {
  RunConfig run = SmallDocumentsRun(3);
  run.model.vocabulary = 12;
  const RunProgress progress = Advance(*MustMakeTrainer(run), 100);
  EXPECT_EQ(progress.outcome, Outcome::kDone);
  RunConfig few = run;
  few.model.vocabulary = 6;
  EXPECT_FALSE(MakeTrainer(few).ok());
}

// A run that continues begins with an untrained model.
TEST(TrainerTest, EvaluatesAndKeepsTheInitialModelOfNoSteps) {
  for (const TrainerKind kind : {TrainerKind::kTorch, TrainerKind::kNative}) {
    RunConfig longer = SmallRecallRun(3);
    longer.training.trainer = kind;
    longer.training.steps = 4;
    longer.training.checkpoints = {0};
    RunConfig none = longer;
    none.training.steps = 0;
    none.training.checkpoints = {};
    none.training.final_checkpoint = true;
    const RunProgress ended = Advance(*MustMakeTrainer(none), 10);
    const RunProgress begun = Advance(*MustMakeTrainer(longer), 10);
    EXPECT_EQ(ended.outcome, Outcome::kDone);
    EXPECT_EQ(ended.step, 0u);
    ASSERT_EQ(ended.checkpoints.size(), 1u);
    EXPECT_EQ(ended.checkpoints[0].step, 0u);
    EXPECT_EQ(ended.checkpoints[0].safetensors, begun.checkpoints.front().safetensors);
    EXPECT_EQ(ValuesOf(ended.points, "eval/loss").size(), 1u);
    EXPECT_EQ(ValuesOf(ended.points, "eval/loss")[0], ValuesOf(begun.points, "eval/loss")[0]);
  }
}

}  // namespace
}  // namespace ablate::engine
