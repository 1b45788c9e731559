// What the trainer refuses to train, by the name of the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

using testing::HasSubstr;

TEST(MakeTrainerTest, NamesTheFieldThatCannotBe) {
  const auto message = [](const auto& change) {
    RunConfig run = SmallDocumentsRun(1);
    change(run);
    return std::string(MakeTrainer({run}).status().message());
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
  EXPECT_THAT(std::string(MakeTrainer({}).status().message()), HasSubstr("no run"));
  RunConfig wider = SmallDocumentsRun(2);
  wider.model.hidden = 32;
  EXPECT_THAT(std::string(MakeTrainer({SmallDocumentsRun(1), wider}).status().message()),
              HasSubstr("run 1 of the stack differs from run 0 in model"));
  RunConfig masked = SmallDocumentsRun(2);
  masked.training.optimizer.weight_decay_on = WeightDecayOn::kMatrices;
  EXPECT_THAT(std::string(MakeTrainer({SmallDocumentsRun(1), masked}).status().message()),
              HasSubstr("run 1 of the stack differs from run 0 in training"));
}

TEST(TorchTrainerTest, RefusesPartsOfOnePositionForBatchNorm) {
  RunConfig run = SmallTextRun(1);
  run.model.norm.kind = NormKind::kBatch;
  run.model.context = 1;
  run.training.batch = run.training.accumulation = 4;
  EXPECT_THAT(std::string(MakeTrainer({run}).status().message()),
              HasSubstr("a batch of one position in all has no variance"));
  run.training.accumulation = 2;
  EXPECT_TRUE(MakeTrainer({run}).ok());
}

TEST(TorchTrainerTest, RefusesNormsThatAreNotDefined) {
  RunConfig run = SmallTextRun(1);
  run.model.norm.kind = NormKind::kRms;
  run.model.norm.backward = NormBackward::kCenterScale;
  EXPECT_THAT(std::string(MakeTrainer({run}).status().message()),
              HasSubstr("model.norm.backward is center_scale"));
  run.model.norm.backward = NormBackward::kExact;
  run.model.norm.deviation = NormDeviation::kUnbiasedEpsOutside;
  EXPECT_THAT(std::string(MakeTrainer({run}).status().message()),
              HasSubstr("model.norm.deviation is unbiased_eps_outside"));
}

TEST(TorchTrainerTest, NeedsNoDivisorOfTheWidthWithoutAttention) {
  RunConfig run = SmallTextRun(1);
  run.model.heads = 3;
  EXPECT_FALSE(MakeTrainer({run}).ok());
  run.model.attention.kind = AttentionKind::kNone;
  EXPECT_TRUE(MakeTrainer({run}).ok());
}

}  // namespace
}  // namespace ablate::engine
