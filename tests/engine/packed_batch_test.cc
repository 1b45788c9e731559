// Tests the packing of batches for captured graphs.
#include "server/engine/torch/device/packed_batch.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/types/span.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

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
}

TEST(PackingTest, PutsEvaluationBatchesOfDocumentsTogether) {
  RunConfig run = SmallDocumentsRun(1);
  run.model.context = 100;
  const Packing packing(run);
  const std::vector<TokenBatch> batches = {BatchOf(60, 3), BatchOf(250, 20), BatchOf(250, 90)};
  const absl::Span<const TokenBatch> all = batches;
  EXPECT_TRUE(packing.Fit(all.first(1)));
  EXPECT_FALSE(packing.Fit(all.first(2)));  // 1,024 rows of 32 positions
  EXPECT_EQ(packing.EvaluationShape(all.first(1)), (PackedShape{64, 16, 16, true, true}));
  EXPECT_EQ(packing.EvaluationShape(all.subspan(1, 1)), (PackedShape{256, 32, 32, true, true}));
  const std::vector<TokenBatch> names = {BatchOf(250, 3), BatchOf(250, 5)};
  EXPECT_TRUE(packing.Fit(names));
  EXPECT_EQ(packing.EvaluationShape(names), (PackedShape{1024, 16, 16, true, true}));
  EXPECT_FALSE(Packing(SmallTextRun(1)).Fit(names));
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
  const PackedShape small = packing.UpdateShape(BatchOf(2, 3));
  EXPECT_EQ(packing.MostUpdateWords(small), packing.UpdateShape(BatchOf(2, 100)).words());
  const TokenBatch largest = BatchOf(256, 100), longer = BatchOf(1024, 16);
  for (const TokenBatch& batch : {largest, longer}) {
    EXPECT_GE(packing.MostEvaluationWords(small), packing.EvaluationShape({&batch, 1}).words());
  }
}

TEST(PackBatchesTest, WriteTokensTargetsAndLengthsWithPadding) {
  TokenBatch batch = BatchOf(2, 2);
  batch.inputs = {1, 2, 3, 0};
  batch.targets = {2, 5, 6, TokenBatch::kIgnored};
  batch.lengths = {2, 1};
  const PackedShape shape = {4, 3, 3, true, true};
  std::vector<int64_t> words(static_cast<size_t>(shape.words()), 77);
  const std::vector<TokenBatch> batches = {batch, BatchOf(1, 1)};
  PackBatches(batches, shape, words.data());
  constexpr int64_t kNo = TokenBatch::kIgnored;
  const std::vector<int64_t> tokens = {1, 2, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0};
  const std::vector<int64_t> targets = {2, 5, kNo, 6, kNo, kNo, 4, kNo, kNo, kNo, kNo, kNo};
  const std::vector<int64_t> lengths = {2, 1, 1, 1};
  std::vector<int64_t> expected;
  for (const auto& part : {tokens, targets, lengths}) {
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(words, expected);
}

}  // namespace
}  // namespace ablate::engine
