// Tests that a run moved to another trainer at any step continues with the same bits: random tasks,
// models, rules and options, stopped at a random step.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "server/engine/core/data/random.h"
#include "server/engine/core/layout.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : generator_(seed) {}
  template <typename Value>
  Value Pick(std::initializer_list<Value> values) {
    return *(values.begin() + generator_.Below(values.size()));
  }
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(generator_.Below(bound)); }

 private:
  SplitMix64 generator_;
};

RunConfig DrawTask(Dice& dice) {
  switch (dice.Below(4)) {
    case 0:
      return SmallDocumentsRun(3);
    case 1:
      return SmallRecallRun(3);
    case 2:
      return SmallPairsRun(3);
    default:
      return SmallTextRun(3);
  }
}

void DrawModel(Dice& dice, ModelConfig* model) {
  model->norm.kind = dice.Pick({NormKind::kLayer, NormKind::kBatch, NormKind::kBatch});
  model->norm.placement =
      dice.Pick({NormPlacement::kPre, NormPlacement::kPost, NormPlacement::kSandwich});
  model->norm.backward = dice.Pick({NormBackward::kExact, NormBackward::kIdentity});
  model->attention.kind = dice.Pick({AttentionKind::kSoftmax, AttentionKind::kSoftmax,
                                     AttentionKind::kSigmoid, AttentionKind::kNone});
  model->positions = dice.Pick({Positions::kLearned, Positions::kRotary, Positions::kSinusoidal});
  model->activation = dice.Pick({Activation::kGelu, Activation::kSwiglu});
  model->dropout = dice.Pick({0.0, 0.2, 0.2});
}

void DrawTraining(Dice& dice, TrainingConfig* training) {
  training->steps = 12;
  training->rule = dice.Pick({LearningRule::kBackprop, LearningRule::kFeedbackAlignment,
                              LearningRule::kDirectFeedbackAlignment});
  training->optimizer.kind =
      dice.Pick({OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd,
                 OptimizerKind::kMuon, OptimizerKind::kLion});
  training->optimizer.momentum = 0.9;
  training->schedule = {
      dice.Pick({ScheduleKind::kConstant, ScheduleKind::kOneCycle, ScheduleKind::kWsd}), 4, 5};
  training->accumulation = dice.Pick({1u, 2u});
  training->ema = dice.Pick({0.0, 0.9});
  training->label_smoothing = dice.Pick({0.0, 0.1});
}

RunConfig DrawRun(Dice& dice) {
  RunConfig run = DrawTask(dice);
  DrawModel(dice, &run.model);
  DrawTraining(dice, &run.training);
  run.evaluation.every = 4;
  if (dice.Below(2) == 0) {
    run.evaluation.record = {Record::kGradientByBlock, Record::kRuleAlignment};
  }
  return run;
}

class ResumePropertyTest : public testing::TestWithParam<uint64_t> {};

TEST_P(ResumePropertyTest, GoesOnWithTheSameBitsFromAnyStep) {
  Dice dice(GetParam());
  const RunConfig run = DrawRun(dice);
  const auto straight = MustMakeTrainer(run);
  const RunProgress whole = Advance(*straight, 1000);

  auto moved = MustMakeTrainer(run);
  RunProgress parts = Advance(*moved, 1 + dice.Below(11));
  const absl::StatusOr<std::string> state = moved->ExportState();
  ASSERT_TRUE(state.ok()) << state.status();
  moved = MustMakeTrainer(run);
  ASSERT_TRUE(moved->ImportState(*state).ok());
  const RunProgress rest = Advance(*moved, 1000);
  parts.points.insert(parts.points.end(), rest.points.begin(), rest.points.end());
  EXPECT_EQ(Exactly(parts.points), Exactly(whole.points));
  EXPECT_EQ(rest.outcome, whole.outcome);
  EXPECT_EQ(*moved->ExportCheckpoint(), *straight->ExportCheckpoint());
  EXPECT_EQ(*moved->ExportState(), *straight->ExportState());
}

INSTANTIATE_TEST_SUITE_P(Draws, ResumePropertyTest, testing::Range<uint64_t>(0, 60));

// Recording takes time but changes no other number.
TEST(RecordTest, ChangesNoOtherBit) {
  for (uint64_t draw = 100; draw < 112; ++draw) {
    Dice dice(draw);
    RunConfig run = DrawRun(dice);
    run.evaluation.record = {};
    const auto plain = MustMakeTrainer(run);
    const RunProgress without = Advance(*plain, 1000);
    run.evaluation.record = {Record::kGradientByBlock, Record::kRuleAlignment};
    const auto recording = MustMakeTrainer(run);
    RunProgress with = Advance(*recording, 1000);
    const size_t all = with.points.size();
    with.points.erase(std::remove_if(with.points.begin(), with.points.end(),
                                     [](const Point& point) {
                                       return point.key.find("/block.") != std::string::npos ||
                                              point.key == "gradient/embedding";
                                     }),
                      with.points.end());
    EXPECT_EQ(all - with.points.size(), 4 * (1 + 4 * static_cast<size_t>(run.model.layers)));
    EXPECT_EQ(Exactly(with.points), Exactly(without.points));
    EXPECT_EQ(*recording->ExportState(), *plain->ExportState());
  }
}

// Returns the value of a recorded metric at a step.
double ValueOf(const RunProgress& progress, const std::string& key, uint32_t step) {
  for (const Point& point : progress.points) {
    if (point.key == key && point.step == step) return point.value;
  }
  ADD_FAILURE() << "no " << key << " at step " << step;
  return 0;
}

TEST(RecordTest, RecordsTheFamiliesOfWhatIsAsked) {
  for (const Record record : {Record::kGradientByBlock, Record::kRuleAlignment}) {
    RunConfig run = SmallDocumentsRun(3);
    run.evaluation.record = {record};
    const RunProgress progress = Advance(*MustMakeTrainer(run), 1);
    for (const BlockMetrics& metrics : kBlockMetrics) {
      const std::string key = std::string(metrics.family) + "/block.1";
      EXPECT_EQ(ValuesOf(progress.points, key).size(), metrics.record == record ? 1u : 0u) << key;
    }
  }
}

TEST(RecordTest, BackpropIsAlignedWithItself) {
  RunConfig run = SmallDocumentsRun(3);
  run.evaluation.record = {Record::kRuleAlignment};
  const RunProgress progress = Advance(*MustMakeTrainer(run), 1000);
  for (const uint32_t step : {0u, 30u}) {
    EXPECT_NEAR(ValueOf(progress, "alignment/block.1", step), 1, 1e-12);
    EXPECT_NEAR(ValueOf(progress, "alignment_ratio/block.1", step), 1, 1e-12);
  }
}

TEST(RecordTest, FeedbackIsAlignedInTheLastBlockMoreThanBefore) {
  RunConfig run = SmallTextRun(3);
  run.model.layers = 4;
  run.training.rule = LearningRule::kFeedbackAlignment;
  run.evaluation.record = {Record::kRuleAlignment};
  const RunProgress progress = Advance(*MustMakeTrainer(run), 1);
  const double last = ValueOf(progress, "alignment/block.3", 0);
  EXPECT_GT(last, 0.1);
  EXPECT_LT(last, 1 - 1e-6);
  EXPECT_LT(ValueOf(progress, "alignment/block.0", 0), last);
}

TEST(RecordTest, GradientsVanishTowardsTheInputWithoutResiduals) {
  RunConfig run = SmallTextRun(3);
  run.model.layers = 12;
  run.model.residual = false;
  run.model.norm.placement = NormPlacement::kNone;
  run.evaluation.record = {Record::kGradientByBlock};
  const RunProgress without = Advance(*MustMakeTrainer(run), 1);
  EXPECT_LT(ValueOf(without, "gradient/block.0", 0),
            0.1 * ValueOf(without, "gradient/block.11", 0));
  run.model.residual = true;
  run.model.norm.placement = NormPlacement::kPre;
  const RunProgress with = Advance(*MustMakeTrainer(run), 1);
  EXPECT_GT(ValueOf(with, "gradient/block.0", 0), 0.3 * ValueOf(with, "gradient/block.11", 0));
}

}  // namespace
}  // namespace ablate::engine
