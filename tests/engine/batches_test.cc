// Tests the contents of training and held-out batches of each task.
#include "server/engine/core/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/core/data/whole_text.h"
#include "server/engine/task.h"
#include "tests/engine/held_out.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::string ExampleData(const std::string& name) {
  std::ifstream file(ABLATE_EXAMPLES_DATA "/" + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Names() { return ExampleData("names.txt"); }

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

RunConfig PairsRun(const RecallTask& task, uint32_t batch) {
  RunConfig run;
  run.task = task;
  run.training.batch = batch;
  run.evaluation.batches = 3;
  return run;
}

RunConfig TextRun(const std::string& text, double validation, int context, uint32_t batch) {
  RunConfig run;
  run.task = *ReadTextTask(text, validation);
  run.model.context = context;
  run.training.batch = batch;
  run.evaluation.batches = 0;
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
  const std::vector<TokenBatch> held_out = HeldOutOf(*source);
  ASSERT_EQ(held_out.size(), 3u);
  EXPECT_THAT(held_out[0].targets, ElementsAre(4, 5));
  EXPECT_THAT(held_out[1].targets, ElementsAre(0, 0, 5));
  EXPECT_THAT(held_out[2].targets, ElementsAre(2, 2, 2, 5));
}

TEST(DocumentBatchesTest, TheFirstHeldOutAreThoseOfTheOrder) {
  const auto source = Make(DocumentsRun("aa\nb\nccc\nd\ne", 3, 1));
  const auto two = source->FirstHeldOut(2, 6);
  ASSERT_TRUE(two.has_value() && two->size() == 2);
  EXPECT_THAT((*two)[0].targets, ElementsAre(4, 5));
  EXPECT_THAT((*two)[1].targets, ElementsAre(2, 2, 2, 5));
  EXPECT_FALSE(source->FirstHeldOut(2, 5).has_value()) << "too many tokens";
  EXPECT_EQ(source->FirstHeldOut(1'000'000, 9)->size(), 3u) << "all that there are";
}

TEST(BatchSourceTest, TheFirstHeldOutAreRowsOfTheHeldOutBatches) {
  const auto source = Make(RecallRun(9, 5, 2));
  const auto three = source->FirstHeldOut(3, 18);
  ASSERT_TRUE(three.has_value() && three->size() == 2);
  EXPECT_EQ((*three)[0].inputs, source->HeldOut(0).inputs);
  EXPECT_EQ((*three)[1].inputs, source->HeldOut(1).Rows(0, 1).inputs);
  EXPECT_EQ((*three)[1].targets, source->HeldOut(1).Rows(0, 1).targets);
  EXPECT_FALSE(source->FirstHeldOut(3, 17).has_value()) << "too many tokens";
}

TEST(DocumentBatchesTest, HeldOutBatchesAreUniformAndBounded) {
  const auto source = Make(DocumentsRun(Names(), 2000, 1));
  int64_t rows = 0;
  int64_t last_length = 0;
  for (const TokenBatch& batch : HeldOutOf(*source)) {
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
  EXPECT_TRUE(HeldOutOf(*Make(DocumentsRun("a\nb", 0, 1))).empty());
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
  const std::vector<TokenBatch> before = HeldOutOf(*source);
  const TokenBatch first = source->Next();
  ASSERT_EQ(before.size(), 3u);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(before[i].inputs, first.inputs);
    EXPECT_THAT(source->HeldOut(i).inputs, ElementsAreArray(before[i].inputs));
  }
}

TEST(RecallBatchesTest, RowIsPairsOfDistinctEntitiesThenOneOfThem) {
  constexpr int kEntities = 20, kAttributes = 20;
  const TokenBatch batch = Make(PairsRun({kEntities, kAttributes, 12}, 200))->Next();
  EXPECT_EQ(batch.rows, 200);
  EXPECT_EQ(batch.length, 13);
  EXPECT_TRUE(batch.uniform());
  ASSERT_EQ(batch.inputs.size(), 200u * 13u);
  for (size_t row = 0; row < 200; ++row) {
    const int64_t* inputs = &batch.inputs[row * 13];
    std::map<int64_t, int64_t> attributes;  // by entity
    for (int i = 0; i < 12; ++i) {
      ASSERT_GE(inputs[i], 0);
      ASSERT_LT(inputs[i], kEntities * kAttributes);
      attributes[inputs[i] / kAttributes] = inputs[i] % kAttributes;
    }
    EXPECT_EQ(attributes.size(), 12u) << "entities repeat in row " << row;
    const int64_t query = inputs[12] - kEntities * kAttributes;
    ASSERT_EQ(attributes.count(query), 1u);
    EXPECT_EQ(batch.targets[row], kEntities * kAttributes + kEntities + attributes[query]);
  }
}

// The order and every attribute are uniform, and the query is uniform over the pairs.
TEST(RecallBatchesTest, DrawsAllSequencesEquallyOften) {
  constexpr size_t kRows = 20'000;
  const TokenBatch batch = Make(PairsRun({3, 2, 2}, kRows))->Next();
  std::map<std::vector<int64_t>, int> counts;
  for (size_t row = 0; row < kRows; ++row) {
    const int64_t* inputs = &batch.inputs[row * 3];
    ++counts[{inputs[0], inputs[1], inputs[2]}];
  }
  // Ordered pairs of entities, an attribute for each, and which of them is asked for.
  constexpr double kSequences = 3 * 2 * 2 * 2 * 2;
  EXPECT_EQ(counts.size(), kSequences);
  double chi_squared = 0;
  for (const auto& [sequence, count] : counts) {
    const double expected = kRows / kSequences;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_NEAR(chi_squared, kSequences - 1, 5 * std::sqrt(2 * kSequences));
}

// Knowing the query without the context gives the label with probability 1/`attributes`.
TEST(RecallBatchesTest, QueryAloneTellsNothingOfTheLabel) {
  constexpr size_t kRows = 40'000;
  const TokenBatch batch = Make(PairsRun({4, 5, 4}, kRows))->Next();
  std::map<std::pair<int64_t, int64_t>, int> counts;  // by query and label
  for (size_t row = 0; row < kRows; ++row)
    ++counts[{batch.inputs[row * 5 + 4], batch.targets[row]}];
  ASSERT_EQ(counts.size(), 20u);
  const double expected = kRows / 20.0;
  for (const auto& [pair, count] : counts) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
}

TEST(RecallBatchesTest, HeldOutHasItsOwnStream) {
  const auto source = Make(PairsRun({20, 20, 20}, 4));
  const TokenBatch first = source->Next();
  ASSERT_EQ(source->HeldOutBatches(), 3u);
  for (const TokenBatch& batch : HeldOutOf(*source)) EXPECT_NE(batch.inputs, first.inputs);
}

// 20 tokens; the last 8 are for validation.
constexpr char kTwenty[] = "abcdefghijklmnopqrst";

TEST(TextBatchesTest, TrainsOnEveryWindowOfTheFirstPartAlike) {
  const auto source = Make(TextRun(kTwenty, 0.4, 4, 5000));
  const TokenBatch batch = source->Next();
  EXPECT_EQ(batch.rows, 5000);
  EXPECT_EQ(batch.length, 4);
  EXPECT_TRUE(batch.uniform());
  std::map<int64_t, int> starts;
  for (size_t row = 0; row < 5000; ++row) {
    const int64_t start = batch.inputs[row * 4];
    ++starts[start];
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(batch.inputs[row * 4 + i], start + static_cast<int64_t>(i));
      EXPECT_EQ(batch.targets[row * 4 + i], start + static_cast<int64_t>(i) + 1);
    }
  }
  // The target of the last position is at most token 11.
  ASSERT_EQ(starts.size(), 8u);
  EXPECT_EQ(starts.begin()->first, 0);
  for (const auto& [start, count] : starts) EXPECT_NEAR(count, 625, 5 * std::sqrt(625.));
}

TEST(TextBatchesTest, EvaluatesConsecutiveWholeWindowsOfTheEnd) {
  const auto source = Make(TextRun(kTwenty, 0.4, 3, 7));
  const std::vector<TokenBatch> held_out = HeldOutOf(*source);
  ASSERT_EQ(held_out.size(), 1u);
  EXPECT_EQ(held_out[0].rows, 2);
  EXPECT_THAT(held_out[0].inputs, ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_THAT(held_out[0].targets, ElementsAre(13, 14, 15, 16, 17, 18));
  // With context 4 a second window would lack its last target.
  EXPECT_EQ(Make(TextRun(kTwenty, 0.4, 4, 7))->HeldOut(0).rows, 1);
}

TEST(TextBatchesTest, EvaluatesTinyshakespeareByThe90To10Split) {
  RunConfig run = TextRun(ExampleData("tinyshakespeare.txt"), 0.1, 64, 1);
  const TokenizedText& text = *std::get<TextTask>(run.task).text;
  EXPECT_EQ(text.alphabet.size(), 65u);
  ASSERT_EQ(text.tokens.size(), 1'115'394u);
  const TextSplit split = SplitText(text.tokens.size(), 0.1, 64);
  EXPECT_EQ(split.training, 1'003'854u);
  EXPECT_EQ(split.validation, 111'540u);
  EXPECT_EQ(split.starts, 1'003'790u);
  EXPECT_EQ(split.windows, 1'742u);
  const auto source = Make(run);
  const std::vector<TokenBatch> all = HeldOutOf(*source);
  ASSERT_EQ(all.size(), 55u);
  EXPECT_EQ(all.front().rows, 32);
  EXPECT_EQ(all.back().rows, 14);
  EXPECT_EQ(all.front().inputs.front(), text.tokens[1'003'854]);
  EXPECT_EQ(all.back().targets.back(), text.tokens[1'003'854 + 1'742 * 64]);
  run.training.batch = 128;
  const auto other = Make(run);
  ASSERT_EQ(other->HeldOutBatches(), all.size()) << "whatever the training batch";
  EXPECT_EQ(other->HeldOut(7).inputs, all[7].inputs);
  run.evaluation.batches = 3;
  const auto three = Make(run);
  ASSERT_EQ(three->HeldOutBatches(), 3u);
  EXPECT_EQ(three->HeldOut(2).inputs, all[2].inputs);
  run.evaluation.batches = 1000;
  EXPECT_EQ(Make(run)->HeldOutBatches(), all.size()) << "at most what there is";
}

size_t HeapInUse() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// The tokens belong to the data set, which all lanes share.
TEST(TextBatchesTest, TakesNoMemoryForWhatItHoldsOut) {
  const RunConfig run = TextRun(ExampleData("tinyshakespeare.txt"), 0.5, 64, 1);
  const size_t before = HeapInUse();
  const auto source = Make(run);
  EXPECT_EQ(source->HeldOutBatches(), 273u);
  EXPECT_EQ(source->HeldOut(272).rows, 10);
  EXPECT_LT(HeapInUse() - before, 10'000u);
}

TEST(MakeBatchSourceTest, RefusesWhatCannotBeTrainedOn) {
  RunConfig no_batch = DocumentsRun("a", 0, 0);
  RunConfig no_context = DocumentsRun("a", 0, 1);
  no_context.model.context = 0;
  RunConfig not_read = DocumentsRun("a", 0, 1);
  not_read.task = DocumentsTask();
  RunConfig no_text = not_read;
  no_text.task = TextTask();
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
      {PairsRun({4, 2, 5}, 1), "task.pairs is 5, but must be 1 to task.entities, which is 4"},
      {PairsRun({4, 2, 0}, 1), "task.pairs is 0, but must be 1 to task.entities, which is 4"},
      {PairsRun({4, 0, 4}, 1), "task.attributes is 0, but must be at least 1"},
      {no_text, "task: its text was not read"},
      {TextRun("abcd", 0.5, 0, 1), "model.context is 0, but must be at least 1"},
      {TextRun("abcd", 1, 1, 1), "task.validation is 1, but must be above 0 and below 1"},
      {TextRun("abcd", 0.5, 2, 1),
       "the text has 2 tokens to train on and 2 to validate on, but model.context 2 needs 3 of "
       "each"},
  };
  for (const auto& item : cases) {
    const auto source = MakeBatchSource(item.run);
    EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(source.status().message()), item.message);
  }
  EXPECT_EQ(ReadDocumentsTask("", 0).status().message(),
            "the text has no document (a non-empty line)");
  EXPECT_EQ(ReadDocumentsTask("a\xFF", 0).status().message(),
            "line 1, column 2: byte 0xff isn't UTF-8");
}

}  // namespace
}  // namespace ablate::engine
