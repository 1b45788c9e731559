// Tests the packing of batches for captured graphs.
#include "server/engine/device/packed_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

using testing::ElementsAre;

TokenBatch BatchOf(int64_t rows, int64_t length) {
  TokenBatch batch;
  batch.rows = rows;
  batch.length = length;
  batch.inputs.assign(static_cast<size_t>(rows * length), 3);
  batch.targets.assign(static_cast<size_t>(rows * length), 4);
  batch.lengths.assign(static_cast<size_t>(rows), length);
  return batch;
}

TEST(PackingTest, PadsDocumentsToFewShapes) {
  RunConfig run = SmallDocumentsRun(1);
  run.model.context = 100;
  const Packing packing(run);
  EXPECT_EQ(packing.UpdateShape(BatchOf(2, 3)).length, 16);
  EXPECT_EQ(packing.UpdateShape(BatchOf(2, 17)).length, 32);
  EXPECT_EQ(packing.UpdateShape(BatchOf(2, 90)).length, 100);
  EXPECT_EQ(packing.UpdateShape(BatchOf(2, 3)).rows, 2);
  EXPECT_EQ(packing.EvaluationShape(BatchOf(2, 3)).rows, 64);
  EXPECT_EQ(packing.EvaluationShape(BatchOf(65, 3)).rows, 256);
}

TEST(PackingTest, KeepsShapesOfATextAndOfRecall) {
  const PackedShape text = Packing(SmallTextRun(1)).UpdateShape(BatchOf(2, 6));
  EXPECT_EQ(text, (PackedShape{2, 6, 6, false, false}));
  TokenBatch one = BatchOf(8, 7);
  one.targets.resize(8);
  EXPECT_EQ(Packing(SmallRecallRun(1)).UpdateShape(one), (PackedShape{8, 7, 1, false, false}));
}

TEST(PackingTest, HasRoomForEveryShapeOfARun) {
  RunConfig run = SmallDocumentsRun(1);
  run.model.context = 100;
  const Packing packing(run);
  const int64_t update = packing.MostWords(packing.UpdateShape(BatchOf(2, 3)));
  EXPECT_EQ(update, packing.UpdateShape(BatchOf(2, 100)).words());
  const int64_t evaluation = packing.MostWords(packing.EvaluationShape(BatchOf(2, 3)));
  EXPECT_EQ(evaluation, packing.EvaluationShape(BatchOf(256, 100)).words());
}

TEST(PackBatchTest, WritesTokensTargetsAndLengthsWithPadding) {
  TokenBatch batch = BatchOf(2, 2);
  batch.inputs = {1, 2, 3, 0};
  batch.targets = {2, 5, 6, TokenBatch::kIgnored};
  batch.lengths = {2, 1};
  const PackedShape shape = {3, 3, 3, true, true};
  std::vector<int64_t> words(static_cast<size_t>(shape.words()), 77);
  PackBatch(batch, shape, words.data());
  constexpr int64_t kNo = TokenBatch::kIgnored;
  EXPECT_THAT(words, ElementsAre(1, 2, 0, 3, 0, 0, 0, 0, 0,              //
                                 2, 5, kNo, 6, kNo, kNo, kNo, kNo, kNo,  //
                                 2, 1, 1));
}

}  // namespace
}  // namespace ablate::engine
