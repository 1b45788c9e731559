// Tests the inputs of analyses: held-out sequences, prompts, and texts of other data sets.
#include "server/engine/core/analyses/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/layout.h"
#include "server/engine/task.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RunConfig RunOf(TaskConfig task, int context) {
  RunConfig run;
  run.task = std::move(task);
  run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
  run.model.context = context;
  run.model.layers = 1;
  run.model.heads = 1;
  run.training.batch = 2;
  run.evaluation.batches = 0;
  run.seed = 42;
  return run;
}
// A run with characters a to e. Seed 42 orders the documents d b ccc e aa; the last three are held
// out.
RunConfig Documents(int context = 16) {
  return RunOf(*ReadDocumentsTask("aa\nb\nccc\nd\ne", 3), context);
}
RunConfig Text(int context, const std::string& text = "abc\nabcabcabcabc\n") {
  return RunOf(*ReadTextTask(text, 0.4), context);
}

AnalysisInputs First(uint64_t documents) {
  AnalysisInputs inputs;
  inputs.documents = documents;
  return inputs;
}
AnalysisInputs Tokens(uint64_t tokens) { return {tokens, "", 0, nullptr}; }
AnalysisInputs Prompt(const std::string& prompt) { return {0, prompt, 0, nullptr}; }
AnalysisInputs Of(const std::string& text, AnalysisInputs inputs) {
  inputs.text = std::make_shared<const std::string>(text);
  return inputs;
}

SequencesRead Read(const std::vector<RunConfig>& runs, const AnalysisInputs& inputs,
                   const AnalysisOptions& options = CkaOptions{}) {
  std::vector<const RunConfig*> subjects;
  for (const RunConfig& run : runs) subjects.push_back(&run);
  auto read = ReadSequences(options, inputs, subjects);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : SequencesRead();
}
// Returns the inputs of each sequence.
std::vector<std::vector<int64_t>> Sequences(const RunConfig& run, const AnalysisInputs& inputs) {
  const SequencesRead read = Read({run}, inputs);
  EXPECT_THAT(read.problems, IsEmpty()) << RefusalOf(read.problems);
  std::vector<std::vector<int64_t>> sequences;
  for (const TokenBatch& batch : read.batches) {
    EXPECT_TRUE(batch.uniform());
    for (int64_t row = 0; row < batch.rows; ++row) {
      sequences.push_back(batch.Rows(row, 1).inputs);
    }
  }
  return sequences;
}
// Returns the error.
std::string Refusal(const std::vector<RunConfig>& runs, const AnalysisInputs& inputs,
                    const AnalysisOptions& options = CkaOptions{}) {
  const SequencesRead read = Read(runs, inputs, options);
  EXPECT_THAT(read.batches, IsEmpty());
  return std::string(RefusalOf(read.problems).message());
}

TEST(InputsTest, ReadsTheFirstDocumentsOfTheHeldOutOrder) {
  EXPECT_THAT(Sequences(Documents(), First(1)), ElementsAre(ElementsAre(5, 2, 2, 2)));
  EXPECT_THAT(Sequences(Documents(), First(2)),
              ElementsAre(ElementsAre(5, 4), ElementsAre(5, 2, 2, 2)))
      << "as rows by their length";
  EXPECT_THAT(Sequences(Documents(), First(1'000'000)), SizeIs(3)) << "all that there are";
  EXPECT_THAT(Sequences(Documents(), Tokens(2)), ElementsAre(ElementsAre(5, 4)))
      << "the shortest, as ever";
}

TEST(InputsTest, ReadsTheFirstWindowsAndSequencesOfOtherTasks) {
  EXPECT_THAT(Sequences(Text(2), First(1)), ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(Sequences(Text(2), First(2)), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 1)));
  RunConfig recall = RunOf(RecallTask{3, 3, 3}, 4);
  recall.evaluation.batches = 3;  // batches of two
  EXPECT_THAT(Sequences(recall, First(3)), SizeIs(3));
  EXPECT_EQ(Sequences(recall, First(3)), Sequences(recall, Tokens(12)));
}

TEST(InputsTest, ReadsDocumentsOfAnotherDataSetFromItsBeginningOn) {
  const std::string other = "ab\n\nedcba\r\nc\n";
  EXPECT_THAT(Sequences(Documents(), Of(other, First(2))),
              ElementsAre(ElementsAre(5, 0, 1), ElementsAre(5, 4, 3, 2, 1, 0)));
  EXPECT_THAT(Sequences(Documents(), Of(other, First(9))), SizeIs(3)) << "none is held out";
  EXPECT_THAT(Sequences(Documents(3), Of(other, First(2))),
              ElementsAre(ElementsAre(5, 0, 1), ElementsAre(5, 4, 3)))
      << "cut to the context";
  EXPECT_THAT(Sequences(Documents(), Of(other, Tokens(9))), SizeIs(2)) << "3 and 6 tokens";
  EXPECT_THAT(Sequences(Documents(), Of(other, Tokens(8))), ElementsAre(ElementsAre(5, 0, 1)))
      << "whole ones, in order: not the third in place of the second";
  EXPECT_THAT(Sequences(Documents(), Of(other, Tokens(1))), SizeIs(1)) << "one at least";
}

TEST(InputsTest, ReadsDocumentsByTheTokenizerOfTheRun) {
  const auto encoding = tokenizer::SmallTokenizer{{"a b", "ab c"}, {"<|endoftext|>"}}.Make();
  const RunConfig run = RunOf(
      DocumentsTask{
          true, std::make_shared<const TokenizedDocuments>(*EncodeDocuments("ab\nb", encoding)), 1},
      4);
  const int64_t end = 258;
  const std::string other = "abc\n\nxyz\u00e9\r\nab abc\n";
  EXPECT_THAT(Sequences({run}, Of(other, First(2))),
              ElementsAre(ElementsAre(end, 257), ElementsAre(end, 'x', 'y', 'z')))
      << "cut to the context";
  EXPECT_THAT(Read({run}, Of(other, First(1))).batches[0].targets, ElementsAre(257, end));
  EXPECT_THAT(Sequences({run}, Of(other, Tokens(6))), SizeIs(2));
  EXPECT_THAT(Sequences({run}, Of(other, Tokens(5))), SizeIs(1)) << "whole ones";
  EXPECT_THAT(Sequences({run}, Prompt("abx")), ElementsAre(ElementsAre(end, 256, 'x')));
  EXPECT_THAT(Sequences({run}, First(1)), SizeIs(1));
}

TEST(InputsTest, TargetsOfAnotherDataSetAreTheNextTokens) {
  const SequencesRead read = Read({Documents()}, Of("ab\n", First(1)));
  ASSERT_THAT(read.batches, SizeIs(1));
  EXPECT_THAT(read.batches[0].targets, ElementsAre(0, 1, 5));
}

TEST(InputsTest, ReadsWindowsOfAnotherText) {
  // Characters are line feed, a, b, c.
  EXPECT_THAT(Sequences(Text(2), Of("cb\r\na\nbc", First(2))),
              ElementsAre(ElementsAre(3, 2), ElementsAre(0, 1)));
  EXPECT_THAT(Sequences(Text(2), Of("cbabc", Tokens(3))), ElementsAre(ElementsAre(3, 2)));
  EXPECT_THAT(Sequences(Text(2), Of("cbabc", Tokens(1'000))), SizeIs(2)) << "whole ones";
  EXPECT_THAT(Sequences(Text(2), Of("cbab", Tokens(1'000))), SizeIs(1))
      << "the second would lack its last target";
  EXPECT_EQ(Refusal({Text(4)}, Of("abca", Tokens(100))),
            "inputs.dataset: it has 4 characters; expected at least 5, one more than the model's "
            "context");
}

TEST(InputsTest, ReadsManySequencesInParts) {
  std::string other;
  for (int i = 0; i < 3'000; ++i) other += i % 2 == 0 ? "ab\n" : "ba\n";
  const SequencesRead read = Read({Documents()}, Of(other, First(3'000)));
  EXPECT_GT(read.batches.size(), 4u);
  uint64_t tokens = 0;
  for (const TokenBatch& batch : read.batches) {
    EXPECT_LE(batch.tokens(), kPieceTokens);
    tokens += batch.tokens();
  }
  EXPECT_EQ(tokens, 9'000u);
}

TEST(InputsTest, ReadsSmallerPartsWhereAPieceTakesMore) {
  std::string other;
  for (int i = 0; i < 3'000; ++i) other += i % 2 == 0 ? "ab\n" : "ba\n";
  RunConfig run = Documents();
  run.model.width = 256;
  run.model.hidden = 1024;
  run.model.layers = 4;
  const auto longest = [&](const std::vector<RunConfig>& runs, const AnalysisOptions& options) {
    uint64_t tokens = 0;
    for (const TokenBatch& batch : Read(runs, Of(other, First(3'000)), options).batches) {
      tokens = std::max(tokens, batch.tokens());
    }
    return static_cast<double>(tokens);
  };
  const double parameters = static_cast<double>(MakeLayout(run.model).size);
  EXPECT_NEAR(longest({run}, SpectrumOptions()), kPieceFlops / (2 * parameters), 3);
  EXPECT_NEAR(longest({run}, GradientFlowOptions()), kPieceFlops / (6 * parameters), 3);
  EXPECT_NEAR(longest({run, run}, CkaOptions()), kPieceFlops / (4 * parameters), 3);
  run.model.width = 4096;
  run.model.hidden = 16'384;
  EXPECT_EQ(longest({run}, HessianOptions()), 3) << "a row at least";
}

TEST(InputsTest, DealsSequencesToTrainingBatchesForTheStatisticsOfABatchNorm) {
  RunConfig run = Documents();
  run.model.norm.kind = NormKind::kBatch;
  const auto lengths = [&](uint32_t batch, uint32_t accumulation, const AnalysisOptions& options) {
    run.training.batch = batch;
    run.training.accumulation = accumulation;
    const auto other = Of("abcd\na\nabcde\nab\nabc\n", First(5));
    std::vector<std::vector<int64_t>> all;
    for (const TokenBatch& read : Read({run}, other, options).batches) all.push_back(read.lengths);
    return all;
  };
  const NormJacobianOptions jacobian;
  EXPECT_THAT(lengths(2, 1, jacobian),
              ElementsAre(ElementsAre(2, 5), ElementsAre(3, 6), ElementsAre(4)));
  EXPECT_THAT(lengths(4, 2, jacobian), SizeIs(3)) << "of a part";
  EXPECT_THAT(lengths(4, 1, jacobian), ElementsAre(ElementsAre(2, 3, 4, 5, 6)));
  EXPECT_THAT(lengths(32, 1, jacobian), ElementsAre(ElementsAre(2, 3, 4, 5, 6)));
  EXPECT_EQ(lengths(2, 1, GradientAlignmentOptions{}), lengths(2, 1, jacobian));
  EXPECT_EQ(lengths(2, 1, GradientFlowOptions{GradientSignal::kRule}), lengths(2, 1, jacobian));
  EXPECT_THAT(lengths(2, 1, GradientFlowOptions{}), SizeIs(5)) << "by running statistics";
  run.model.norm.kind = NormKind::kLayer;
  EXPECT_THAT(lengths(2, 1, jacobian), SizeIs(5)) << "none is padded";
}

TEST(InputsTest, PadsTargetsOfTrainingBatchesAsIgnored) {
  RunConfig run = Documents();
  run.model.norm.kind = NormKind::kBatch;
  const SequencesRead read = Read({run}, Of("ab\na\n", First(2)), NormJacobianOptions{});
  ASSERT_THAT(read.batches, SizeIs(1));
  EXPECT_THAT(read.batches[0].inputs, ElementsAre(5, 0, 0, 5, 0, 1));
  EXPECT_THAT(read.batches[0].targets, ElementsAre(0, 5, TokenBatch::kIgnored, 0, 1, 5));
}

TEST(InputsTest, NamesACharacterThatTheRunLacksAndItsPlace) {
  const std::string documents = "ab\n\nabé\n";
  EXPECT_EQ(Refusal({Documents()}, Of(documents, First(2))),
            "inputs.dataset: document 2 has as character 3 \"é\" U+00E9, which is not in the run's "
            "data; expected its 5 characters");
  EXPECT_THAT(Sequences(Documents(), Of(documents, First(1))), SizeIs(1)) << "it is not read";
  EXPECT_THAT(Sequences(Documents(2), Of(documents, First(2))), SizeIs(2)) << "it is cut off";
  EXPECT_NE(Refusal({Documents(3)}, Of(documents, First(2))), "") << "it is the last target";
  EXPECT_EQ(Refusal({Text(2)}, Of("ab\nca\tb", First(3))),
            "inputs.dataset: line 2 has as character 3 U+0009, which is not in the run's data; "
            "expected its 4 characters");
  EXPECT_THAT(Sequences(Text(2), Of("ab\nca\tb", First(2))), SizeIs(2));
  EXPECT_EQ(Refusal({Documents()}, Prompt("abx")),
            "inputs.prompt: character 3, \"x\" U+0078, is not in the run's data; expected its 5 "
            "characters");
}

TEST(InputsTest, RefusesDocumentsOfTooManyTokens) {
  std::string other;
  for (int i = 0; i < 62'501; ++i) other += "abcdeabcdeabcdea\n";  // 16 tokens each in this context
  const std::string refused =
      "inputs.documents: the first 62501 have more than 1,000,000 tokens together; expected so "
      "many that they have at most 1,000,000";
  EXPECT_EQ(Refusal({Documents()}, Of(other, First(62'501))), refused);
  EXPECT_THAT(Read({Documents()}, Of(other, First(62'500))).problems, IsEmpty());
  const RunConfig own = RunOf(*ReadDocumentsTask(absl::StrCat("a\n", other), 62'501), 16);
  EXPECT_EQ(Refusal({own}, First(62'501)), refused);
  const RunConfig text = Text(16, "abcde\nabcdeabcde\nabcdeabcde\nabcdeabcdeabcdeabcdeabcdeabcde");
  EXPECT_EQ(Refusal({text}, Of(other, First(1'000'000))).substr(0, 43),
            "inputs.documents: the first 1000000 have mo");
}

TEST(InputsTest, NamesTheSubjectThatReadsSomethingElse) {
  RunConfig seed = Documents();
  seed.seed = 43;
  EXPECT_EQ(Refusal({Documents(), Documents(), seed}, Tokens(100)),
            "subjects[2]: it reads other sequences than the ones before; expected models that are "
            "held to the same sequences");
  EXPECT_THAT(Read({Documents(), Documents(), seed}, Of("abc\n", Tokens(100))).problems, IsEmpty())
      << "all of them read this one";
  EXPECT_EQ(Refusal({Documents(), RunOf(*ReadDocumentsTask("ab\nba\na", 1), 16)}, Prompt("abc")),
            "inputs.prompt: character 3, \"c\" U+0063, is not in the run's data (subjects[1]); "
            "expected its 2 characters");
}

TEST(InputsTest, RefusesWhatAKindCanNotRead) {
  const AnalysisOptions maps = AttentionOptions{{AttentionMaps::kHeads}};
  EXPECT_EQ(Refusal({Documents()}, First(2), maps),
            "analysis.attention.maps: they are of one sequence of at most 512 tokens, and 2 of up "
            "to 4 are read; expected with a prompt, or one document");
  EXPECT_THAT(Read({Documents()}, First(1), maps).problems, IsEmpty());
  EXPECT_THAT(Read({Documents()}, First(2), AttentionOptions{}).problems, IsEmpty());
  const AnalysisOptions weights = CaptureOptions{{"embedding", "block.0.attention.weights"}};
  EXPECT_EQ(Refusal({Documents()}, First(2), weights),
            "analysis.capture.sites[1]: block.0.attention.weights has a matrix for each sequence, "
            "and the sequences that are read have from 2 to 4 tokens; expected sites with features "
            "at each token, or a prompt");
  EXPECT_THAT(Read({Documents()}, Prompt("ab"), weights).problems, IsEmpty());
  EXPECT_THAT(Read({Documents()}, First(2), CaptureOptions{{"logits"}}).problems, IsEmpty());
}

TEST(InputsTest, CheckReadSaysTheSame) {
  const RunConfig run = Documents();
  const auto problems = CheckRead(CkaOptions{}, Prompt("x"), {&run});
  ASSERT_TRUE(problems.ok()) << problems.status();
  ASSERT_THAT(*problems, SizeIs(1));
  EXPECT_EQ((*problems)[0].field, "inputs.prompt");
  EXPECT_THAT(*CheckRead(CkaOptions{}, Prompt("ab"), {&run}), IsEmpty());
  RunConfig unread = run;
  unread.task = DocumentsTask{};
  EXPECT_FALSE(CheckRead(CkaOptions{}, Tokens(10), {&unread}).ok());
}

}  // namespace
}  // namespace ablate::engine
