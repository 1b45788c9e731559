// Tests which runs the trainer rejects, by the name of the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

using testing::HasSubstr;

TEST(MakeTrainerTest, RefusesAModelOfAnotherTask) {
  const auto message = [](const auto& change) {
    RunConfig run = SmallDocumentsRun(1);
    change(run);
    return std::string(MakeTrainer(run).status().message());
  };
  const auto refused = HasSubstr("its vocabulary, context or loss is not the task's");
  EXPECT_THAT(message([](RunConfig& run) { run.model.vocabulary = 6; }), refused);
  EXPECT_THAT(message([](RunConfig& run) { run.model.loss = LossPositions::kLast; }), refused);
  EXPECT_THAT(
      message([](RunConfig& run) { std::get<DocumentsTask>(run.task).documents = nullptr; }),
      HasSubstr("task: its documents were not read"));
  RunConfig recall = SmallRecallRun(1);
  recall.model.context = 6;
  EXPECT_THAT(std::string(MakeTrainer(recall).status().message()), refused);
}

// Submitting rejects such a run; a micro-batch may still have a single position.
TEST(TorchTrainerTest, TrainsNoPartOfOnePositionWithBatchNorm) {
  RunConfig run = SmallTextRun(1);
  run.model.norm.kind = NormKind::kBatch;
  run.model.context = 1;
  run.training.batch = run.training.accumulation = 4;
  const auto trainer = MustMakeTrainer(run);
  EXPECT_EQ(trainer->Advance(1, [] { return false; }).status().code(), absl::StatusCode::kInternal);
}

TEST(TorchTrainerTest, NeedsNoDivisorOfTheWidthWithoutAttention) {
  RunConfig run = SmallTextRun(1);
  run.model.heads = 3;
  run.model.attention.kind = AttentionKind::kNone;
  EXPECT_EQ(Advance(*MustMakeTrainer(run), 1).step, 1u);
}

}  // namespace
}  // namespace ablate::engine
