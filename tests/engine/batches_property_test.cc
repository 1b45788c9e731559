// Tests properties of every source of batches, over a range of sizes, seeds and batch sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/task.h"
#include "tests/engine/held_out.h"

namespace ablate::engine {
namespace {

// Returns documents that are the numbers 0, 1, … in base 3, so that lengths differ and each is
// recognisable.
std::string Numbers(uint32_t documents) {
  std::string text;
  for (uint32_t i = 0; i < documents; ++i) {
    std::string digits;
    for (uint32_t rest = i; digits.empty() || rest > 0; rest /= 3) {
      digits.insert(digits.begin(), static_cast<char>('0' + rest % 3));
    }
    text += digits + "\n";
  }
  return text;
}

struct Size {
  uint32_t documents, held_out, batch, seed;
};

std::vector<Size> Sizes() {
  std::vector<Size> sizes;
  for (const uint32_t documents : {4u, 5u, 64u, 1000u}) {
    for (const uint32_t held_out : {0u, 1u, documents / 2, documents - 1}) {
      for (const uint32_t batch : {1u, 3u, 7u}) {
        for (const uint32_t seed : {0u, 42u}) sizes.push_back({documents, held_out, batch, seed});
      }
    }
  }
  return sizes;
}

std::string Describe(const Size& size) {
  return absl::StrCat(size.documents, " documents, ", size.held_out, " held out, batch ",
                      size.batch, ", seed ", size.seed);
}

std::unique_ptr<BatchSource> SourceOf(const RunConfig& run) {
  auto source = MakeBatchSource(run);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

RunConfig DocumentsRun(const Size& size) {
  RunConfig run;
  run.task = *ReadDocumentsTask(Numbers(size.documents), size.held_out);
  run.training.batch = size.batch;
  run.seed = size.seed;
  return run;
}

RunConfig RecallRun(uint32_t seed) {
  RunConfig run;
  run.task = LegacyRecallTask{20, 6};
  run.training.batch = 5;
  run.seed = seed;
  return run;
}

RunConfig PairsRun(uint32_t seed) {
  RunConfig run = RecallRun(seed);
  run.task = RecallTask{7, 3, 5};
  return run;
}

RunConfig TextRun(uint32_t seed) {
  RunConfig run = RecallRun(seed);
  run.task = *ReadTextTask(Numbers(300), 0.2);
  run.model.context = 9;
  return run;
}

// Returns a run of every kind of task except documents.
std::vector<RunConfig> Runs(uint32_t seed) {
  return {RecallRun(seed), PairsRun(seed), TextRun(seed)};
}

// Returns the number that each row of a batch spells, after checking the row's form.
std::vector<uint32_t> Decode(const TokenBatch& batch) {
  constexpr int64_t kBos = 3;
  std::vector<uint32_t> numbers;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t length = batch.lengths[static_cast<size_t>(row)];
    const int64_t* inputs = &batch.inputs[static_cast<size_t>(row * batch.length)];
    const int64_t* targets = &batch.targets[static_cast<size_t>(row * batch.length)];
    EXPECT_EQ(inputs[0], kBos);
    EXPECT_EQ(targets[length - 1], kBos);
    uint32_t number = 0;
    for (int64_t i = 1; i < length; ++i) {
      EXPECT_EQ(inputs[i], targets[i - 1]);
      number = number * 3 + static_cast<uint32_t>(inputs[i]);
    }
    for (int64_t i = length; i < batch.length; ++i) {
      EXPECT_EQ(inputs[i], 0);
      EXPECT_EQ(targets[i], TokenBatch::kIgnored);
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<uint32_t> DecodeHeldOut(const BatchSource& source) {
  std::vector<uint32_t> numbers;
  for (const TokenBatch& batch : HeldOutOf(source)) {
    EXPECT_TRUE(batch.uniform());
    for (const uint32_t number : Decode(batch)) numbers.push_back(number);
  }
  return numbers;
}

void ExpectEqual(const TokenBatch& a, const TokenBatch& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.length, b.length);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.lengths, b.lengths);
}

TEST(BatchSourcePropertyTest, EachEpochTrainsOnEveryDocumentOnceInOneOrder) {
  for (const Size& size : Sizes()) {
    SCOPED_TRACE(Describe(size));
    const auto source = SourceOf(DocumentsRun(size));
    const size_t training = size.documents - size.held_out;
    std::vector<uint32_t> stream;
    while (stream.size() < 3 * training) {
      for (const uint32_t number : Decode(source->Next())) stream.push_back(number);
    }
    const std::vector<uint32_t> epoch(stream.begin(),
                                      stream.begin() + static_cast<std::ptrdiff_t>(training));
    EXPECT_EQ(std::set<uint32_t>(epoch.begin(), epoch.end()).size(), training);
    for (size_t i = training; i < stream.size(); ++i) ASSERT_EQ(stream[i], stream[i - training]);
  }
}

TEST(BatchSourcePropertyTest, TrainingAndHeldOutPartitionTheDocuments) {
  for (const Size& size : Sizes()) {
    SCOPED_TRACE(Describe(size));
    const auto source = SourceOf(DocumentsRun(size));
    std::multiset<uint32_t> seen;
    for (const uint32_t number : DecodeHeldOut(*source)) seen.insert(number);
    EXPECT_EQ(seen.size(), size.held_out);
    const size_t training = size.documents - size.held_out;
    std::vector<uint32_t> stream;
    while (stream.size() < training) {
      for (const uint32_t number : Decode(source->Next())) stream.push_back(number);
    }
    seen.insert(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(training));
    ASSERT_EQ(seen.size(), size.documents);
    uint32_t expected = 0;
    for (const uint32_t number : seen) EXPECT_EQ(number, expected++);
  }
}

TEST(BatchSourcePropertyTest, HeldOutIsTheSameBeforeAndAfterTraining) {
  std::vector<RunConfig> runs = Runs(42);
  runs.push_back(DocumentsRun({1000, 400, 7, 42}));
  for (const RunConfig& run : runs) {
    const auto source = SourceOf(run);
    const std::vector<TokenBatch> before = HeldOutOf(*source);
    ASSERT_FALSE(before.empty());
    for (int i = 0; i < 10; ++i) source->Next();
    const std::vector<TokenBatch> after = HeldOutOf(*source);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) ExpectEqual(before[i], after[i]);
  }
}

TEST(BatchSourcePropertyTest, CursorContinuesTheSameStream) {
  std::vector<RunConfig> runs = Runs(0);
  for (const RunConfig& run : Runs(42)) runs.push_back(run);
  for (const Size& size : Sizes()) runs.push_back(DocumentsRun(size));
  for (const RunConfig& run : runs) {
    const auto first = SourceOf(run);
    for (const int steps : {0, 1, 5, 11}) {
      for (int i = 0; i < steps; ++i) first->Next();
      const auto second = SourceOf(run);
      second->Next();
      ASSERT_TRUE(second->SetCursor(first->Cursor()).ok());
      EXPECT_EQ(second->Cursor(), first->Cursor());
      for (int i = 0; i < 4; ++i) ExpectEqual(first->Next(), second->Next());
    }
  }
}

TEST(BatchSourcePropertyTest, SeedChangesTheStream) {
  EXPECT_NE(SourceOf(DocumentsRun({64, 1, 7, 0}))->Next().inputs,
            SourceOf(DocumentsRun({64, 1, 7, 1}))->Next().inputs);
  for (size_t i = 0; i < Runs(0).size(); ++i) {
    EXPECT_NE(SourceOf(Runs(0)[i])->Next().inputs, SourceOf(Runs(1)[i])->Next().inputs);
  }
}

TEST(BatchSourcePropertyTest, ForeignCursorIsRefusedAndChangesNothing) {
  const auto documents = SourceOf(DocumentsRun({64, 4, 7, 0}));
  const auto recall = SourceOf(RecallRun(0));
  const auto pairs = SourceOf(PairsRun(0));
  const auto text = SourceOf(TextRun(0));
  const std::vector<uint64_t> own = documents->Cursor();
  const struct {
    BatchSource& source;
    std::vector<uint64_t> cursor;
    const char* message;
  } cases[] = {
      {*documents, {}, "the data cursor is not one of a documents task"},
      {*documents, recall->Cursor(), "the data cursor is not one of a documents task"},
      {*documents, {own[0], own[1]}, "the data cursor is not one of a documents task"},
      {*documents,
       {own[0], 60, 60},
       "the data cursor is at document 60 of 60, but this run trains on 60 documents"},
      {*documents, SourceOf(DocumentsRun({1000, 4, 7, 0}))->Cursor(),
       "the data cursor is at document 0 of 996, but this run trains on 60 documents"},
      {*recall, own, "the data cursor is not one of a legacy recall task"},
      {*recall, {own[0], 1}, "the data cursor is not one of a legacy recall task"},
      {*recall, {}, "the data cursor is not one of a legacy recall task"},
      {*recall, pairs->Cursor(), "the data cursor is not one of a legacy recall task"},
      {*pairs, recall->Cursor(), "the data cursor is not one of a recall task"},
      {*text, pairs->Cursor(), "the data cursor is not one of a text task"},
      {*text,
       {text->Cursor()[0], 7, 1},
       "the data cursor is of a text with 7 places to begin a window, but this run has 1380"},
  };
  for (const auto& item : cases) {
    item.source.Next();
    const std::vector<uint64_t> before = item.source.Cursor();
    const absl::Status status = item.source.SetCursor(item.cursor);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()), item.message);
    EXPECT_EQ(item.source.Cursor(), before);
  }
}

}  // namespace
}  // namespace ablate::engine
