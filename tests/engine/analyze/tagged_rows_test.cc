// Tests how tagged sentences are read as sequences, and which tokens their words have.
#include "server/engine/core/analyses/tagged_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/task.h"
#include "tests/engine/analyze/tagged_text.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

RunConfig TaggedRunOf(TaskConfig task, int context) {
  RunConfig run;
  run.task = std::move(task);
  run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
  run.model.context = context;
  run.model.layers = 1;
  run.model.heads = 1;
  run.training.batch = 2;
  return run;
}
// Runs whose characters are a to e, with the space in a text.
RunConfig DocumentsRun(int context = 16) {
  return TaggedRunOf(*ReadDocumentsTask("aa\nb\nccc\nd\ne", 3), context);
}
RunConfig TextRun(int context = 16) {
  return TaggedRunOf(*ReadTextTask("abcde abcde abcde", 0.4), context);
}
// A run with a tokenizer.
RunConfig PiecesRun(int context = 64) {
  const std::string folder = absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe/");
  auto text = std::make_shared<TokenizedText>();
  text->encoding = *tokenizer::BytePairEncoding::Read(folder + "vocab.json", folder + "merges.txt");
  text->tokens.assign(1000, 1);
  TextTask task;
  task.text = text;
  return TaggedRunOf(task, context);
}

SequencesRead ReadTagged(const RunConfig& run, const AnalysisInputs& inputs,
                         const AnalysisOptions& options = CkaOptions{}) {
  auto read = ReadSequences(options, inputs, {&run});
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : SequencesRead();
}

std::string TaggedProblem(const RunConfig& run, const AnalysisInputs& inputs,
                          const AnalysisOptions& options = CkaOptions{}) {
  const SequencesRead read = ReadTagged(run, inputs, options);
  EXPECT_THAT(read.batches, IsEmpty());
  EXPECT_EQ(read.tagged, nullptr);
  return std::string(RefusalOf(read.problems).message());
}

// Returns the first and the last position of each word of a row.
std::vector<std::pair<int64_t, int64_t>> WordSpans(const SequencesRead& read, size_t row = 0) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  EXPECT_NE(read.tagged, nullptr) << RefusalOf(read.problems);
  if (read.tagged == nullptr) return spans;
  for (const TokenSpan& span : read.tagged->rows[row].words) {
    spans.emplace_back(span.first, span.last);
  }
  return spans;
}

TEST(TaggedRowsTest, ReadsASentenceAsADocument) {
  const SequencesRead read = ReadTagged(DocumentsRun(), AllOf(Conllu({{{"ab", "X"}, {"c", "Y"}}})));
  ASSERT_THAT(read.batches, SizeIs(1));
  EXPECT_THAT(read.batches[0].inputs, ElementsAre(5, 0, 1, 2));
  EXPECT_THAT(read.batches[0].targets, ElementsAre(0, 1, 2, 5)) << "the boundary is the last one";
  EXPECT_THAT(WordSpans(read), ElementsAre(Pair(1, 2), Pair(3, 3)));
}

TEST(TaggedRowsTest, ReadsASentenceOfAText) {
  const SequencesRead read =
      ReadTagged(TextRun(), AllOf(Conllu({{{"ab", "X"}, {"c", "Y"}}}, true)));
  ASSERT_THAT(read.batches, SizeIs(1));
  EXPECT_THAT(read.batches[0].inputs, ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(read.batches[0].targets, ElementsAre(2, 0, 3, TokenBatch::kIgnored));
  EXPECT_THAT(WordSpans(read), ElementsAre(Pair(0, 1), Pair(3, 3)));
}

TEST(TaggedRowsTest, CutsASentenceToTheContextWithTheWordsBeyond) {
  const AnalysisInputs inputs = AllOf(Conllu({{{"ab", "X"}, {"cd", "Y"}, {"e", "Z"}}}));
  const SequencesRead documents = ReadTagged(DocumentsRun(4), inputs);
  EXPECT_THAT(documents.batches[0].inputs, ElementsAre(5, 0, 1, 2));
  EXPECT_THAT(documents.batches[0].targets, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(WordSpans(documents), ElementsAre(Pair(1, 2))) << "a half word is none";
  const SequencesRead text = ReadTagged(TextRun(4), inputs);
  EXPECT_THAT(text.batches[0].inputs, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(text.batches[0].targets, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(WordSpans(text), ElementsAre(Pair(0, 1), Pair(2, 3)));
  EXPECT_THAT(WordSpans(ReadTagged(DocumentsRun(2), inputs)), IsEmpty());
}

TEST(TaggedRowsTest, GroupsRowsByLengthAndKeepsTheirSentences) {
  const SequencesRead read = ReadTagged(
      DocumentsRun(), AllOf(Conllu({{{"abc", "X"}}, {{"d", "X"}}, {{"cba", "X"}}, {{"e", "Y"}}})));
  ASSERT_THAT(read.batches, SizeIs(2));
  EXPECT_THAT(read.batches[0].inputs, ElementsAre(5, 3, 5, 4));
  EXPECT_THAT(read.batches[1].inputs, ElementsAre(5, 0, 1, 2, 5, 2, 1, 0));
  std::vector<size_t> sentences;
  for (const TaggedRow& row : read.tagged->rows) sentences.push_back(row.sentence);
  EXPECT_THAT(sentences, ElementsAre(1, 3, 0, 2));
  EXPECT_EQ(read.tagged->sentences[1].words[0].form, "d");
  EXPECT_EQ(read.tagged->sentences[1].text, "") << "it isn't needed any more";
}

TEST(TaggedRowsTest, ReadsAsManySentencesAsTheInputsSay) {
  AnalysisInputs inputs = AllOf(Conllu({{{"ab", "X"}}, {{"c", "X"}}, {{"d", "X"}}, {{"é", "X"}}}));
  inputs.documents = 2;
  EXPECT_THAT(ReadTagged(DocumentsRun(), inputs).tagged->rows, SizeIs(2));
  inputs.documents = 0;
  for (const auto& [tokens, rows] :
       std::vector<std::pair<uint64_t, size_t>>{{1, 1}, {4, 1}, {5, 2}, {6, 2}, {7, 3}, {8, 3}}) {
    inputs.tokens = tokens;
    EXPECT_THAT(ReadTagged(DocumentsRun(), inputs).tagged->rows, SizeIs(rows)) << tokens;
  }
  inputs.tokens = 9;
  EXPECT_EQ(TaggedProblem(DocumentsRun(), inputs),
            "inputs.dataset: sentence 4 (line 7) has as character 1 \"é\" U+00E9, which is not in "
            "the run's data; expected its 5 characters");
}

TEST(TaggedRowsTest, CharactersBeyondTheContextNeedNoToken) {
  const AnalysisInputs inputs = AllOf(Conllu({{{"abé", "X"}}}));
  EXPECT_THAT(WordSpans(ReadTagged(DocumentsRun(2), inputs)), IsEmpty());
  EXPECT_NE(TaggedProblem(DocumentsRun(3), inputs), "") << "it is the last target";
  EXPECT_NE(TaggedProblem(TextRun(2), inputs), "") << "likewise";
}

TEST(TaggedRowsTest, WordsOfAMultiwordTokenDivideItOrShareIt) {
  const std::string divided =
      "1-2\tabc\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
      "1\tab\t_\tX\t_\t_\t_\t_\t_\t_\n2\tc\t_\tY\t_\t_\t_\t_\t_\t_\n"
      "3\td\t_\tZ\t_\t_\t_\t_\t_\t_\n";
  EXPECT_THAT(WordSpans(ReadTagged(DocumentsRun(), AllOf(divided))),
              ElementsAre(Pair(1, 2), Pair(3, 3), Pair(4, 4)));
  const std::string shared =
      "1-2\tabc\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
      "1\tad\t_\tX\t_\t_\t_\t_\t_\t_\n2\tee\t_\tY\t_\t_\t_\t_\t_\t_\n"
      "3\td\t_\tZ\t_\t_\t_\t_\t_\t_\n";
  EXPECT_THAT(WordSpans(ReadTagged(DocumentsRun(), AllOf(shared))),
              ElementsAre(Pair(1, 3), Pair(1, 3), Pair(4, 4)));
}

// Returns the bytes of the tokens of a word.
std::string BytesOfWord(const RunConfig& run, const SequencesRead& read, size_t word) {
  const TokenSpan span = read.tagged->rows[0].words[word];
  const auto& inputs = read.batches[0].inputs;
  std::vector<uint32_t> tokens(inputs.begin() + span.first, inputs.begin() + span.last + 1);
  return std::get<TextTask>(run.task).text->encoding->Decode(tokens).value();
}

TEST(TaggedRowsTest, FindsWordsInTextThatTheTokenizerNormalizes) {
  auto text = std::make_shared<TokenizedText>();
  text->encoding =
      *tokenizer::BytePairEncoding::ParseJson(tokenizer::SmallTokenizer{{"a b"}, {}}.JsonFile());
  text->tokens.assign(1000, 1);
  TextTask task;
  task.text = text;
  const RunConfig run = TaggedRunOf(task, 64);
  const TextSentence sentence = {{"cafe\u0301", "X"}, {"ab", "Y"}};
  const SequencesRead read = ReadTagged(run, AllOf(Conllu({sentence}, true)));
  ASSERT_THAT(WordSpans(read), ElementsAre(Pair(0, 4), Pair(6, 6)));
  EXPECT_EQ(BytesOfWord(run, read, 0), "café");
  EXPECT_EQ(BytesOfWord(run, read, 1), "ab");
}

TEST(TaggedRowsTest, WordsOfATokenizerHaveEveryTokenWithAByteOfThem) {
  const RunConfig run = PiecesRun();
  const std::vector<std::string> forms = {"The", "king's", "naïveté", "😀", "speak", "."};
  TextSentence sentence;
  for (const std::string& form : forms) sentence.push_back({form, "X"});
  const SequencesRead read = ReadTagged(run, AllOf(Conllu({sentence}, true)));
  ASSERT_THAT(WordSpans(read), SizeIs(forms.size()));
  for (size_t i = 0; i < forms.size(); ++i) {
    // A token may begin with the space before it.
    const std::string bytes = BytesOfWord(run, read, i);
    EXPECT_THAT(bytes, testing::AnyOf(forms[i], " " + forms[i]));
  }
  EXPECT_GT(WordSpans(read)[3].second, WordSpans(read)[3].first)
      << "parts of a character are tokens";
}

TEST(TaggedRowsTest, CutsASentenceOfTokensAsTheWholeSentence) {
  const std::string file = Conllu({{{"The", "X"}, {"king", "Y"}, {"speaks", "Z"}}}, true);
  const SequencesRead whole = ReadTagged(PiecesRun(), AllOf(file));
  const int64_t last = WordSpans(whole).back().second;
  for (int context = 1; context <= last + 1; ++context) {
    const SequencesRead cut = ReadTagged(PiecesRun(context), AllOf(file));
    const auto& inputs = whole.batches[0].inputs;
    EXPECT_EQ(cut.batches[0].inputs,
              std::vector<int64_t>(inputs.begin(), inputs.begin() + context));
    EXPECT_EQ(cut.batches[0].targets.back(), whole.batches[0].targets[context - 1]);
    for (const auto& [first, end] : WordSpans(cut)) EXPECT_LT(end, context) << first;
  }
}

TEST(TaggedRowsTest, ATokenOfTwoWordsBelongsToBoth) {
  const RunConfig run = PiecesRun();
  const SequencesRead whole = ReadTagged(run, AllOf(Conllu({{{"her", "X"}}})));
  ASSERT_THAT(WordSpans(whole), ElementsAre(Pair(0, 0)));
  const SequencesRead parts = ReadTagged(run, AllOf(Conllu({{{"h", "X"}, {"er", "Y"}}})));
  EXPECT_THAT(WordSpans(parts), ElementsAre(Pair(0, 0), Pair(0, 0)));
}

TEST(TaggedRowsTest, NamesTheLineOfAMalformedFile) {
  const std::string file = Conllu({{{"ab", "X"}}});
  EXPECT_EQ(
      TaggedProblem(DocumentsRun(), AllOf(file + "1\ta\tb\n")),
      "inputs.dataset: line 3: the number of its columns is 3; expected 10, separated by tabs");
  EXPECT_EQ(TaggedProblem(DocumentsRun(), AllOf(file + "2\ta\t_\t_\t_\t_\t_\t_\t_\t_\n")),
            "inputs.dataset: line 3: its ID is 2; expected 1");
  EXPECT_EQ(TaggedProblem(DocumentsRun(), AllOf(file + "1\ta\xff\t_\t_\t_\t_\t_\t_\t_\t_\n")),
            "inputs.dataset: line 3: it is not UTF-8; expected sentences in CoNLL-U");
}

TEST(TaggedRowsTest, RefusesTooManyTokens) {
  std::vector<TextSentence> sentences(62'501, {{"abcdeabcdeabcdea", "X"}});
  AnalysisInputs inputs = AllOf(Conllu(sentences));
  EXPECT_EQ(TaggedProblem(DocumentsRun(), inputs).substr(0, 60),
            "inputs.documents: the first 1000000 have more than 1,000,000");
  inputs.documents = 62'500;
  EXPECT_THAT(ReadTagged(DocumentsRun(), inputs).tagged->rows, SizeIs(62'500));
}

TEST(TaggedRowsTest, OtherInputsHaveNone) {
  AnalysisInputs inputs;
  inputs.tokens = 10;
  EXPECT_EQ(ReadTagged(DocumentsRun(), inputs).tagged, nullptr);
  EXPECT_EQ(ReadTagged(DocumentsRun(), AllOf("ab\ncd\n")).tagged, nullptr);
  RunConfig run = DocumentsRun();
  run.model.norm.kind = NormKind::kBatch;
  const AnalysisInputs tagged = AllOf(Conllu({{{"ab", "X"}}, {{"c", "Y"}}}));
  EXPECT_EQ(ReadTagged(run, tagged, NormJacobianOptions{}).tagged, nullptr)
      << "rows of training batches have another order";
  EXPECT_NE(ReadTagged(run, tagged, SpectrumOptions{}).tagged, nullptr);
}

std::string ProbeProblem(const AnalysisInputs& inputs, const std::string& label = "upos",
                         int context = 16) {
  ProbeOptions options;
  options.label = label;
  return TaggedProblem(DocumentsRun(context), inputs, options);
}

TEST(TaggedRowsTest, ProbeRefusesWhatItCanNotLearn) {
  AnalysisInputs untagged;
  untagged.tokens = 10;
  const std::string needs =
      "inputs.dataset: probe needs tagged sentences; expected a data set in CoNLL-U, whose words "
      "have labels";
  EXPECT_EQ(ProbeProblem(untagged), needs);
  EXPECT_EQ(ProbeProblem(AllOf("ab\ncd\n")), needs);
  const std::string two = Conllu({{{"ab", "X", "Case=A|Number=B"}}, {{"c", "Y", "Number=B"}}});
  EXPECT_EQ(ProbeProblem(AllOf(two), "Gender"),
            "analysis.probe.label: no word has the label \"Gender\"; expected upos, Number, Case");
  EXPECT_EQ(ProbeProblem(AllOf(two), "Case"),
            "inputs.dataset: one sentence alone has words with Case; expected at least two: one to "
            "learn from and one to score");
  EXPECT_EQ(ProbeProblem(AllOf(two), "upos", 1),
            "inputs.dataset: no labelled word is within the model's context; expected shorter "
            "sentences, or a longer context");
  EXPECT_EQ(ProbeProblem(AllOf(Conllu({{{"a", "_"}}})), "upos"),
            "analysis.probe.label: no word has the label \"upos\"; expected a data set whose words "
            "have labels");
  const std::string long_name = absl::StrCat(std::string(101, 'N'), "=1|Case=A");
  EXPECT_EQ(ProbeProblem(AllOf(Conllu({{{"a", "_", long_name}}})), "upos"),
            "analysis.probe.label: no word has the label \"upos\"; expected Case");
  std::vector<TextSentence> many;
  for (int i = 0; i < 257; ++i) many.push_back({{"a", absl::StrCat("L", i)}});
  EXPECT_EQ(ProbeProblem(AllOf(Conllu(many))),
            "analysis.probe.label: words have 257 values of upos; expected at most 256");
  many.pop_back();
  EXPECT_THAT(ReadTagged(DocumentsRun(), AllOf(Conllu(many)), ProbeOptions{}).problems, IsEmpty());
  many[0][0].upos = std::string(101, 'L');
  EXPECT_EQ(ProbeProblem(AllOf(Conllu(many))),
            "analysis.probe.label: a value of upos has 101 bytes; expected at most 100");
}

TEST(TaggedRowsTest, ProbeRefusesMoreWordsThanTokens) {
  const std::string sentence =
      "1-2\ta\t_\t_\t_\t_\t_\t_\t_\t_\n1\tb\t_\tX\t_\t_\t_\t_\t_\t_\n"
      "2\tc\t_\tY\t_\t_\t_\t_\t_\t_\n\n";
  const AnalysisInputs inputs = AllOf(sentence + sentence);
  EXPECT_EQ(TaggedProblem(TextRun(), inputs, ProbeOptions{}),
            "inputs.dataset: the number of words with upos is 4, larger than that of the tokens "
            "that are read; expected at most 2");
  EXPECT_THAT(ReadTagged(DocumentsRun(), inputs, ProbeOptions{}).problems, IsEmpty())
      << "boundaries are tokens, too";
}

}  // namespace
}  // namespace ablate::engine
