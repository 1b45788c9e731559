// What training and held-out batches of each task contain.
#include "server/engine/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "server/engine/task.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::string Names() {
  std::ifstream file(ABLATE_EXAMPLES_DATA "/names.txt", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

RunConfig DocumentsRun(const std::string& text, uint32_t held_out, uint32_t batch) {
  RunConfig run;
  run.task = *ReadDocumentsTask(text, held_out);
  run.model.context = 16;
  run.training.batch = batch;
  run.seed = 42;
  return run;
}

RunConfig RecallRun(int keys, int draw, uint32_t batch) {
  RunConfig run;
  run.task = LegacyRecallTask{keys, draw};
  run.training.batch = batch;
  run.evaluation.batches = 3;
  return run;
}

std::unique_ptr<BatchSource> Make(const RunConfig& run) {
  auto source = MakeBatchSource(run);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

TEST(DocumentBatchesTest, FollowsTheSourcesOrder) {
  RunConfig run = DocumentsRun(Names(), 2000, 1);
  const auto source = Make(run);
  std::string names;
  for (int i = 0; i < 8; ++i) {
    const TokenBatch batch = source->Next();
    EXPECT_EQ(batch.inputs.front(), 26);  // BOS
    EXPECT_EQ(batch.targets.back(), 26);
    for (int64_t t = 0; t + 1 < batch.length; ++t) {
      names += static_cast<char>('a' + batch.targets[static_cast<size_t>(t)]);
      EXPECT_EQ(batch.inputs[static_cast<size_t>(t) + 1], batch.targets[static_cast<size_t>(t)]);
    }
    names += ' ';
  }
  EXPECT_EQ(names, "yuheng diondre xavien jori juanluis erandi phia samatha ");
}

TEST(DocumentBatchesTest, CutsToTheContext) {
  RunConfig run = DocumentsRun("abcd", 0, 1);
  run.model.context = 3;
  const TokenBatch batch = Make(run)->Next();
  EXPECT_THAT(batch.inputs, ElementsAre(4, 0, 1));
  EXPECT_THAT(batch.targets, ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.lengths, ElementsAre(3));
  run.model.context = 5;  // exactly BOS and all characters
  EXPECT_THAT(Make(run)->Next().targets, ElementsAre(0, 1, 2, 3, 4));
}

TEST(DocumentBatchesTest, TokensAreDistinctCodePointsInOrder) {
  const TokenBatch batch = Make(DocumentsRun("z\xC3\xA9 a\r\n", 0, 1))->Next();
  EXPECT_THAT(batch.inputs, ElementsAre(4, 2, 3, 0, 1));  // BOS z é space a
}

TEST(DocumentBatchesTest, PadsOnTheRight) {
  // Seed 42 orders two documents 1, 0.
  const TokenBatch batch = Make(DocumentsRun("ab\nc", 0, 2))->Next();
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.length, 3);
  EXPECT_FALSE(batch.uniform());
  EXPECT_THAT(batch.lengths, ElementsAre(2, 3));
  EXPECT_THAT(batch.inputs, ElementsAre(3, 2, 0, 3, 0, 1));
  EXPECT_THAT(batch.targets, ElementsAre(2, 3, TokenBatch::kIgnored, 0, 1, 3));
}

TEST(TokenBatchTest, GivesRowsPaddedToTheirOwnLongest) {
  TokenBatch batch;
  batch.rows = 4;
  batch.length = 3;
  batch.inputs = {1, 0, 0, 2, 3, 0, 4, 5, 6, 7, 0, 0};
  batch.lengths = {1, 2, 3, 1};
  constexpr int64_t kNone = TokenBatch::kIgnored;
  batch.targets = {10, kNone, kNone, 20, 30, kNone, 40, 50, 60, 70, kNone, kNone};
  const TokenBatch first = batch.Rows(0, 2);
  EXPECT_EQ(first.rows, 2);
  EXPECT_EQ(first.length, 2);
  EXPECT_THAT(first.lengths, ElementsAre(1, 2));
  EXPECT_THAT(first.inputs, ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(first.targets, ElementsAre(10, kNone, 20, 30));
  EXPECT_THAT(batch.Rows(3, 1).inputs, ElementsAre(7));
  batch.targets = {10, 20, 30, 40};  // of the last positions
  EXPECT_THAT(batch.Rows(1, 2).targets, ElementsAre(20, 30));
  EXPECT_THAT(batch.Rows(1, 2).inputs, ElementsAre(2, 3, 0, 4, 5, 6));
}

TEST(DocumentBatchesTest, CyclesWithinABatchWhenDocumentsAreFew) {
  const TokenBatch batch = Make(DocumentsRun("a\nb\n", 0, 5))->Next();
  EXPECT_TRUE(batch.uniform());
  EXPECT_THAT(batch.inputs, ElementsAre(2, 1, 2, 0, 2, 1, 2, 0, 2, 1));
}

TEST(DocumentBatchesTest, HeldOutIsTheEndOfTheOrderByLength) {
  // Seed 42 orders five documents 3 1 2 4 0: the held-out ones are ccc, e, aa.
  const auto source = Make(DocumentsRun("aa\nb\nccc\nd\ne", 3, 1));
  const std::vector<TokenBatch>& held_out = source->HeldOut();
  ASSERT_EQ(held_out.size(), 3u);
  EXPECT_THAT(held_out[0].targets, ElementsAre(4, 5));
  EXPECT_THAT(held_out[1].targets, ElementsAre(0, 0, 5));
  EXPECT_THAT(held_out[2].targets, ElementsAre(2, 2, 2, 5));
}

TEST(DocumentBatchesTest, HeldOutBatchesAreUniformAndBounded) {
  const auto source = Make(DocumentsRun(Names(), 2000, 1));
  int64_t rows = 0;
  int64_t last_length = 0;
  for (const TokenBatch& batch : source->HeldOut()) {
    EXPECT_TRUE(batch.uniform());
    EXPECT_LE(batch.rows, BatchSource::kMaxEvaluationBatch);
    EXPECT_GE(batch.length, last_length);
    last_length = batch.length;
    rows += batch.rows;
  }
  EXPECT_EQ(rows, 2000);
  EXPECT_LE(last_length, 16);
}

TEST(DocumentBatchesTest, HasNoHeldOutBatchWhenNothingIsHeldOut) {
  EXPECT_TRUE(Make(DocumentsRun("a\nb", 0, 1))->HeldOut().empty());
}

TEST(LegacyRecallBatchesTest, RowIsContextThenZeroThenQuery) {
  const TokenBatch batch = Make(RecallRun(400, 40, 128))->Next();
  EXPECT_EQ(batch.rows, 128);
  EXPECT_EQ(batch.length, 41);
  EXPECT_TRUE(batch.uniform());
  ASSERT_EQ(batch.inputs.size(), 128u * 41u);
  ASSERT_EQ(batch.targets.size(), 128u);
  for (size_t row = 0; row < 128; ++row) {
    const int64_t* inputs = &batch.inputs[row * 41];
    std::set<int64_t> keys(inputs, inputs + 39);
    keys.insert(batch.targets[row]);
    EXPECT_EQ(keys.size(), 40u) << "keys repeat in row " << row;
    EXPECT_GE(*keys.begin(), 0);
    EXPECT_LT(*keys.rbegin(), 400);
    EXPECT_EQ(inputs[39], 0);
    EXPECT_EQ(inputs[40], batch.targets[row]);
  }
}

TEST(LegacyRecallBatchesTest, DrawsAllKeysEquallyOften) {
  const auto source = Make(RecallRun(8, 3, 10000));
  const TokenBatch batch = source->Next();
  // Every ordered triple of distinct keys: 336 of them, about 30 times each.
  std::map<std::vector<int64_t>, int> counts;
  for (size_t row = 0; row < 10000; ++row) {
    const int64_t* inputs = &batch.inputs[row * 4];
    ++counts[{inputs[3], inputs[0], inputs[1]}];
  }
  EXPECT_EQ(counts.size(), 336u);
  double chi_squared = 0;
  for (const auto& [triple, count] : counts) {
    const double expected = 10000.0 / 336.0;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_NEAR(chi_squared, 335, 8 * std::sqrt(2 * 335.0));
}

TEST(LegacyRecallBatchesTest, DrawsEveryKeyWhenDrawEqualsKeys) {
  const TokenBatch batch = Make(RecallRun(5, 5, 1))->Next();
  std::vector<int64_t> keys(batch.inputs.begin(), batch.inputs.begin() + 4);
  keys.push_back(batch.targets[0]);
  EXPECT_THAT(keys, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST(LegacyRecallBatchesTest, HasNoContextWhenOneKeyIsDrawn) {
  const TokenBatch batch = Make(RecallRun(1, 1, 2))->Next();
  EXPECT_THAT(batch.inputs, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(batch.targets, ElementsAre(0, 0));
}

TEST(LegacyRecallBatchesTest, HeldOutHasItsOwnStream) {
  const auto source = Make(RecallRun(400, 40, 4));
  const std::vector<TokenBatch> before = source->HeldOut();
  const TokenBatch first = source->Next();
  ASSERT_EQ(before.size(), 3u);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(before[i].inputs, first.inputs);
    EXPECT_THAT(source->HeldOut()[i].inputs, ElementsAreArray(before[i].inputs));
  }
}

TEST(MakeBatchSourceTest, RefusesWhatCannotBeTrainedOn) {
  RunConfig no_batch = DocumentsRun("a", 0, 0);
  RunConfig no_context = DocumentsRun("a", 0, 1);
  no_context.model.context = 0;
  RunConfig not_read = DocumentsRun("a", 0, 1);
  not_read.task = DocumentsTask();
  const struct {
    RunConfig run;
    const char* message;
  } cases[] = {
      {no_batch, "training.batch is 0, but must be at least 1"},
      {no_context, "model.context is 0, but must be at least 1"},
      {not_read, "task: its documents were not read"},
      {DocumentsRun("a\nb", 2, 1),
       "task.held_out is 2, but must be below the number of documents, 2, to leave one to train "
       "on"},
      {RecallRun(400, 0, 1), "task.draw is 0, but must be 1 to task.keys, which is 400"},
      {RecallRun(4, 5, 1), "task.draw is 5, but must be 1 to task.keys, which is 4"},
  };
  for (const auto& item : cases) {
    const auto source = MakeBatchSource(item.run);
    EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(source.status().message()), item.message);
  }
  EXPECT_EQ(ReadDocumentsTask("", 0).status().message(),
            "the text has no document (a non-empty line)");
  EXPECT_EQ(ReadDocumentsTask("a\xFF", 0).status().message(),
            "the text is not UTF-8: byte 1 is 0xff");
}

}  // namespace
}  // namespace ablate::engine
