#include "server/engine/analyze/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/engine/analyze/lbfgs.h"
#include "server/engine/analyze/sentence_bootstrap.h"
#include "server/engine/core/data/random.h"
#include "tests/docs_page.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_probe.h"
#include "tests/engine/analyze/stops.h"
#include "tests/engine/analyze/tagged_text.h"

namespace ablate::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ProbeOptions kWithoutControls = {.controls = false};

AnalysisRequest ProbeRequest(const AnalysisSubject& subject,
                             const std::vector<TextSentence>& sentences,
                             const ProbeOptions& options = {}) {
  return {options, {subject}, AllOf(Conllu(sentences))};
}

// Returns the model whose embedding of letter i is row i of a multiple of the identity.
AnalysisSubject OneHotModel(int letters) {
  return ModelOfRows(3 * at::eye(letters, at::kDouble)).first;
}

// Returns `count` sentences of four random one-letter words, whose labels `label_of` makes.
template <typename LabelOf>
std::vector<TextSentence> RandomWords(size_t count, int letters, const LabelOf& label_of) {
  SplitMix64 draws(7);
  std::vector<TextSentence> sentences(count);
  for (TextSentence& sentence : sentences) {
    for (int i = 0; i < 4; ++i) {
      const uint64_t letter = draws.Below(static_cast<uint64_t>(letters));
      sentence.push_back(
          {std::string(1, static_cast<char>('a' + letter)), label_of(letter, &draws)});
    }
  }
  return sentences;
}

// Numbers of drawn subjects that read documents or a text.
constexpr uint64_t kDrawnTexts[] = {0, 2, 3, 8, 9, 10, 11, 16, 17, 18};

TEST(ProbeTest, EqualsAPlainProbeInDrawnSettings) {
  int informative = 0;
  for (const uint64_t number : kDrawnTexts) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    for (const Subtoken subtoken : {Subtoken::kLast, Subtoken::kFirst, Subtoken::kMean}) {
      const ProbeOptions options = {
          .test = 0.4, .subtoken = subtoken, .c = number % 2 == 0 ? 1 : 0.1};
      const std::vector<TextSentence> sentences = DrawnSentences(60, "abcdefg");
      AnalysisRequest request = ProbeRequest(subject, sentences, options);
      request.seed = static_cast<uint32_t>(number);
      const AnalysisResult result = Analyzed(request);
      const std::vector<PlainProbe> plain = PlainProbes(request, sentences);
      for (size_t depth = 0; depth < plain.size(); ++depth) {
        const std::string place = depth == 0 ? "embedding" : absl::StrCat("block.", depth - 1);
        SCOPED_TRACE(place);
        EXPECT_DOUBLE_EQ(NumberIn(result, "accuracy/" + place), plain[depth].accuracy);
        EXPECT_DOUBLE_EQ(NumberIn(result, "shuffled/" + place), plain[depth].shuffled);
        EXPECT_DOUBLE_EQ(NumberIn(result, "types/" + place), plain[depth].types);
        EXPECT_DOUBLE_EQ(NumberIn(result, "selectivity/" + place),
                         plain[depth].accuracy - plain[depth].types);
        EXPECT_DOUBLE_EQ(NumberIn(result, "majority"), plain[depth].majority);
        EXPECT_GT(NumberIn(result, "steps/" + place), 1);
        informative += plain[depth].accuracy > plain[depth].majority ? 1 : 0;
      }
    }
  }
  EXPECT_GT(informative, 30);
}

TEST(ProbeTest, ReadsALabelThatTheEmbeddingDetermines) {
  const auto sentences = RandomWords(
      80, 6, [](uint64_t letter, SplitMix64*) { return absl::StrCat("L", letter % 3); });
  const AnalysisResult result = Analyzed(ProbeRequest(OneHotModel(6), sentences));
  EXPECT_EQ(NumberIn(result, "accuracy/embedding"), 1);
  EXPECT_EQ(NumberIn(result, "accuracy_low/embedding"), 1);
  EXPECT_EQ(NumberIn(result, "accuracy_high/embedding"), 1);
  EXPECT_EQ(NumberIn(result, "types/embedding"), 1) << "each word type was seen";
  EXPECT_EQ(NumberIn(result, "selectivity/embedding"), 0);
  EXPECT_LT(NumberIn(result, "shuffled/embedding"), 0.7) << "six types have a random label each";
  EXPECT_LT(NumberIn(result, "majority"), 0.5);
}

// Labels are independent of words, so that a probe can only predict the most frequent one. The
// random label of each word type can be learned.
TEST(ProbeTest, FindsNothingInRandomLabels) {
  const auto sentences = RandomWords(
      300, 6, [](uint64_t, SplitMix64* draws) { return draws->Below(10) < 6 ? "A" : "B"; });
  const AnalysisResult result = Analyzed(ProbeRequest(OneHotModel(6), sentences));
  for (const std::string place : {"embedding", "block.0"}) {
    const double error = std::sqrt(0.24 / 360);  // of 360 scored words
    EXPECT_NEAR(NumberIn(result, "accuracy/" + place), NumberIn(result, "majority"), 3 * error);
    EXPECT_NEAR(NumberIn(result, "shuffled/" + place), NumberIn(result, "majority"), 3 * error);
    EXPECT_EQ(NumberIn(result, "types/" + place), 1);
    EXPECT_LT(NumberIn(result, "selectivity/" + place), -0.2);
  }
}

// Words by their letters, at the first, last or all of their positions.
TEST(ProbeTest, ReadsTheTokenThatTheOptionNames) {
  std::vector<TextSentence> sentences;
  SplitMix64 draws(1);
  for (int i = 0; i < 60; ++i) {
    TextSentence& sentence = sentences.emplace_back();
    for (int j = 0; j < 2; ++j) {
      const bool first = draws.Below(2) == 0, last = draws.Below(2) == 0;
      sentence.push_back({absl::StrCat(first ? "a" : "b", "e", last ? "c" : "d"), first ? "X" : "Y",
                          last ? "Last=P" : "Last=Q"});
    }
  }
  const auto accuracy = [&](const std::string& label, Subtoken subtoken) {
    const ProbeOptions options = {.label = label, .subtoken = subtoken, .controls = false};
    return NumberIn(Analyzed(ProbeRequest(OneHotModel(7), sentences, options)),
                    "accuracy/embedding");
  };
  EXPECT_EQ(accuracy("upos", Subtoken::kFirst), 1);
  EXPECT_LT(accuracy("upos", Subtoken::kLast), 0.9);
  EXPECT_EQ(accuracy("Last", Subtoken::kLast), 1);
  EXPECT_LT(accuracy("Last", Subtoken::kFirst), 0.9);
  EXPECT_EQ(accuracy("upos", Subtoken::kMean), 1);
  EXPECT_EQ(accuracy("Last", Subtoken::kMean), 1);
}

// Two words of a multiword token have the mean of all its tokens each.
TEST(ProbeTest, WordsOfOneSpanShareItsMean) {
  const auto file = [](const std::string& words_of_token) {
    std::string text;
    SplitMix64 draws(5);
    for (int i = 0; i < 60; ++i) {
      const std::string form = draws.Below(2) == 0 ? "ab" : "dc";
      absl::StrAppend(&text, absl::StrReplaceAll(words_of_token, {{"FORM", form}}), "\n");
    }
    return absl::StrReplaceAll(text, {{" ", "\t"}});
  };
  const ProbeOptions options = {.subtoken = Subtoken::kMean, .controls = false};
  // The labels of both words are those of the token's letters.
  std::string shared = file(
      "1-2 FORM _ _ _ _ _ _ _ SpaceAfter=No\n1 e _ FORM _ _ _ _ _ _\n"
      "2 e _ FORM _ _ _ _ _ _\n3 e _ E _ _ _ _ _ _\n");
  const AnalysisResult result = Analyzed({options, {OneHotModel(5)}, AllOf(shared)});
  EXPECT_EQ(NumberIn(result, "accuracy/embedding"), 1);
  EXPECT_THAT(result.notes[0], HasSubstr("scored on 54 words of 18"));
}

TEST(ProbeTest, CountsConfusions) {
  const AnalysisResult result =
      Analyzed(ProbeRequest(ModelM(), DrawnSentences(60, "abcdefg"), kWithoutControls));
  const at::Tensor confusion = ArrayIn(result, "confusion");
  ASSERT_EQ(confusion.sizes(), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(result.arrays[0].type, TensorType::kI64);
  EXPECT_EQ(result.arrays[0].axes, (std::vector<std::string>{"depth", "label", "predicted"}));
  ASSERT_EQ(result.arrays[1].name, "label_text");
  EXPECT_EQ(result.arrays[1].bytes, "NOUNVERB");
  EXPECT_EQ(result.arrays[1].type, TensorType::kU8);
  EXPECT_TRUE(at::equal(ArrayIn(result, "label_ends"), at::tensor({4, 8}, at::kLong)));
  const std::vector<std::string> places = {"embedding", "block.0", "block.1"};
  for (int64_t depth = 0; depth < 3; ++depth) {
    const at::Tensor of = confusion[depth];
    EXPECT_DOUBLE_EQ(of.trace().item<double>() / of.sum().item<double>(),
                     NumberIn(result, "accuracy/" + places[static_cast<size_t>(depth)]));
    EXPECT_TRUE(at::equal(of.sum(1), confusion[0].sum(1))) << "labels are those of the words";
  }
}

TEST(ProbeTest, IntervalsContainTheAccuracy) {
  const AnalysisResult result =
      Analyzed(ProbeRequest(ModelM(), DrawnSentences(80, "abcdefg"), kWithoutControls));
  for (const std::string place : {"embedding", "block.0", "block.1"}) {
    const double low = NumberIn(result, "accuracy_low/" + place);
    const double high = NumberIn(result, "accuracy_high/" + place);
    EXPECT_LT(low, NumberIn(result, "accuracy/" + place));
    EXPECT_GT(high, NumberIn(result, "accuracy/" + place));
    EXPECT_GT(high - low, 0.05);
    EXPECT_LT(high - low, 0.5);
  }
}

TEST(ProbeTest, DividesTheAccuracyAmongSentences) {
  const AnalysisResult result =
      Analyzed(ProbeRequest(ModelM(), DrawnSentences(80, "abcdefg"), kWithoutControls));
  for (const std::string place : {"embedding", "block.1"}) {
    const at::Tensor sentences = ArrayIn(result, "by_sequence/accuracy/" + place);
    ASSERT_EQ(sentences.sizes(), (std::vector<int64_t>{2, 24})) << "scored ones";
    EXPECT_NEAR(sentences[0].mean().item<double>(), NumberIn(result, "accuracy/" + place), 1e-12);
    EXPECT_NEAR(sentences[1].mean().item<double>(), 1, 1e-12);
    EXPECT_TRUE(sentences[0].le(sentences[1]).all().item<bool>()) << "correct ones are words";
    EXPECT_GT(sentences[1].std().item<double>(), 0);
  }
}

// A quarter of the resamples has the first sentence alone, and a quarter the second.
TEST(ProbeTest, BootstrapsSentencesNotWords) {
  const std::vector<Interval> two = BootstrapIntervals({10, 10}, {{0, 10}, {10, 10}, {5, 5}}, 3);
  EXPECT_EQ(two[0].low, 0);
  EXPECT_EQ(two[0].high, 1);
  EXPECT_EQ(two[1].low, 1);
  EXPECT_EQ(two[2].low, 0.5);
  EXPECT_EQ(two[2].high, 0.5);
  // At most one of 8 draws is right with a probability of 0.035, and none with 0.004.
  const std::vector<size_t> eight(8, 1);
  const std::vector<Interval> half = BootstrapIntervals(eight, {{1, 1, 1, 1, 0, 0, 0, 0}}, 3);
  EXPECT_EQ(half[0].low, 1.0 / 8);
  EXPECT_EQ(half[0].high, 7.0 / 8);
  // 400 sentences of one word: that of a binomial share.
  std::vector<size_t> words(400, 1);
  std::vector<int64_t> correct(400);
  std::fill(correct.begin(), correct.begin() + 100, 1);
  const std::vector<Interval> many = BootstrapIntervals(words, {correct}, 3);
  const double error = 1.96 * std::sqrt(0.25 * 0.75 / 400);
  EXPECT_NEAR(many[0].low, 0.25 - error, 0.008);
  EXPECT_NEAR(many[0].high, 0.25 + error, 0.008);
}

TEST(ProbeTest, CountsWhatItLeavesOut) {
  std::vector<TextSentence> sentences(10, {{"a", "X"}, {"b", "_"}, {"c", "Y"}});
  sentences.push_back({{"abcd", "X"}, {"efg", "Y"}, {"abc", "X"}, {"a", "_"}});
  const AnalysisResult result = Analyzed(ProbeRequest(ModelM(), sentences, kWithoutControls));
  EXPECT_THAT(OtherNotes(result),
              ElementsAre("learned from 16 words of 8 sentences, scored on 6 words of 3",
                          "10 words without upos are left out",
                          "2 words beyond the model's context are left out"));
  EXPECT_EQ(NumberIn(result, "accuracy/embedding"), 1);
}

TEST(ProbeTest, CountsLabelsThatNoWordToLearnFromHasAsWrong) {
  std::vector<TextSentence> sentences;
  for (int i = 0; i < 12; ++i) sentences.push_back({{"a", "X"}, {"b", "Y"}});
  // Whichever sentence is scored, it is the only one with its label.
  for (int i = 0; i < 12; ++i)
    sentences[static_cast<size_t>(i)].push_back({"c", absl::StrCat("Z", i)});
  const ProbeOptions options = {.test = 0.01, .controls = false};
  const AnalysisResult result = Analyzed(ProbeRequest(OneHotModel(4), sentences, options));
  EXPECT_DOUBLE_EQ(NumberIn(result, "accuracy/embedding"), 2.0 / 3);
  EXPECT_THAT(result.notes, Contains("1 scored words have a label that no word to learn from has, "
                                     "and count as wrong"));
  EXPECT_EQ(ReasonIn(result, "accuracy_low/embedding"), Undefined::kTooFewTokens)
      << "one sentence alone is scored";
  EXPECT_EQ(ArrayIn(result, "confusion").sizes(), (std::vector<int64_t>{2, 14, 14}));
}

TEST(ProbeTest, ScoresASentenceAndLearnsFromOneAtLeast) {
  const std::vector<TextSentence> three(3, {{"a", "X"}, {"b", "Y"}});
  const auto scored = [&](double test) {
    const ProbeOptions options = {.test = test, .controls = false};
    return Analyzed(ProbeRequest(OneHotModel(4), three, options)).notes[0];
  };
  EXPECT_THAT(scored(0.001), HasSubstr("of 2 sentences, scored on 2 words of 1"));
  EXPECT_THAT(scored(0.999), HasSubstr("of 1 sentences, scored on 4 words of 2"));
  EXPECT_THAT(scored(0.5), HasSubstr("of 1 sentences, scored on 4 words of 2"));
}

TEST(ProbeTest, IsUndefinedForOneClass) {
  const std::vector<TextSentence> sentences(6, {{"a", "X"}, {"b", "X"}});
  const AnalysisResult result = Analyzed(ProbeRequest(ModelM(), sentences));
  EXPECT_EQ(result.numbers.size(), 7 * 3 + 1u);
  ExpectUndefined(result, Undefined::kOneClass);
  EXPECT_TRUE(result.arrays.empty());
}

// A random label for each of few types can be the same for all.
TEST(ProbeTest, ControlOfTypesMayHaveOneClass) {
  const std::vector<TextSentence> sentences(8, {{"a", "X"}, {"a", "Y"}, {"a", "X"}});
  const AnalysisResult result = Analyzed(ProbeRequest(ModelM(), sentences));
  ExpectUndefined(result, Undefined::kOneClass, {"types/embedding", "selectivity/block.1"});
  EXPECT_EQ(ReasonIn(result, "accuracy/block.1"), std::nullopt);
}

TEST(ProbeTest, IsUndefinedWhereAModelDiverged) {
  const AnalysisResult result =
      Analyzed(ProbeRequest(DivergedModelM(), DrawnSentences(20, "abcdefg")));
  for (const std::string name :
       {"accuracy", "accuracy_low", "accuracy_high", "shuffled", "types", "selectivity", "steps"}) {
    EXPECT_EQ(ReasonIn(result, name + "/embedding"), std::nullopt) << name;
    EXPECT_EQ(ReasonIn(result, name + "/block.0"), Undefined::kNonFinite) << name;
  }
  EXPECT_EQ(ArrayIn(result, "confusion")[1].sum().item<double>(), 0);
}

TEST(ProbeTest, ConvergesWhereOnlyThePenaltyBoundsTheCoefficients) {
  const auto sentences = RandomWords(
      40, 6, [](uint64_t letter, SplitMix64*) { return absl::StrCat("L", letter % 2); });
  const ProbeOptions options = {.c = 1e6, .controls = false};
  const AnalysisResult result = Analyzed(ProbeRequest(OneHotModel(6), sentences, options));
  EXPECT_EQ(NumberIn(result, "accuracy/embedding"), 1);
  EXPECT_LT(NumberIn(result, "steps/embedding"), 1000);
  EXPECT_EQ(OtherNotes(result).size(), 1u);
}

TEST(ProbeTest, LeavesOutControlsThatNobodyAsksFor) {
  for (const AnalysisNumber& number :
       Analyzed(ProbeRequest(ModelM(), DrawnSentences(20, "abcdefg"), kWithoutControls)).numbers) {
    EXPECT_FALSE(number.name.starts_with("types") || number.name.starts_with("shuffled") ||
                 number.name.starts_with("selectivity"))
        << number.name;
  }
}

TEST(ProbeTest, GivesTheSameBitsWhereverItIsCut) {
  // A large C takes several pieces to converge.
  const AnalysisRequest request = ProbeRequest(ModelM(), DrawnSentences(30, "abcdefg"), {.c = 100});
  ExpectSameBitsWhereverItIsCut(request);
  EXPECT_GT(NumberIn(Analyzed(request), "steps/block.1"), 10) << "it is cut in the middle of a fit";
}

// Returns the context of an analysis of drawn sentences.
AnalysisContext ProbeContext(const AnalysisSubject& subject, const ProbeOptions& options) {
  return *ReadAnalysisContext(ProbeRequest(subject, DrawnSentences(40, "abcdefg"), options));
}

AnalysisResult ProbedWithin(const ProbeLimits& limits, const AnalysisContext& analysis,
                            int64_t* pieces) {
  const MadeComputation made = MakeProbe(ProbeOptions(), analysis, limits);
  *pieces = (*made)->pieces();
  return Finished(made);
}

TEST(ProbeTest, GivesTheSameBitsInMorePassesAndSmallerPieces) {
  const AnalysisContext analysis = ProbeContext(ModelM(), ProbeOptions());
  int64_t usual = 0, passes = 0, small = 0;
  const AnalysisResult whole = ProbedWithin(ProbeLimits(), analysis, &usual);
  ProbeLimits limits;
  limits.feature_bytes = 1;
  ExpectSameBits(whole, ProbedWithin(limits, analysis, &passes));
  EXPECT_EQ(passes, usual + 2 * analysis.batch_count());
  limits.piece_operations = 1;
  ExpectSameBits(whole, ProbedWithin(limits, analysis, &small));
  EXPECT_EQ(small, 3 * analysis.batch_count() + 9 * 1000);
}

TEST(ProbeTest, NotesFitsThatDoNotConverge) {
  const AnalysisContext analysis = ProbeContext(ModelM(), ProbeOptions());
  const std::string all =
      "accuracy/embedding, accuracy/block.0, accuracy/block.1, shuffled/embedding, "
      "shuffled/block.0, shuffled/block.1, types/embedding, types/block.0, types/block.1";
  int64_t pieces = 0;
  ProbeLimits limits;
  limits.steps = 2;
  const AnalysisResult few = ProbedWithin(limits, analysis, &pieces);
  EXPECT_EQ(few.notes.back(), "probes that did not converge in 2 steps: " + all);
  EXPECT_EQ(NumberIn(few, "steps/block.1"), 2);
}

// No data is known on which rounding errors stop a fit: the test sets the status of two.
TEST(ProbeTest, NotesFitsThatRoundingErrorsStop) {
  const AnalysisContext analysis = ProbeContext(ModelM(), ProbeOptions());
  const MadeComputation made = MakeProbe(ProbeOptions(), analysis, ProbeLimits());
  EXPECT_EQ(Finished(made).notes.size(), 1u);
  for (const StateTensor& state : (*made)->State()) {
    if (state.name != "outcomes") continue;  // [depths, fits, outcomes], the last one is the status
    for (const auto& [depth, fit] : {std::pair(1, 0), std::pair(2, 2)}) {
      state.tensor[depth][fit][-1].fill_(static_cast<double>(LbfgsStatus::kStalled));
    }
  }
  const std::vector<std::string> notes = (*made)->Finish().notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1],
            "probes that rounding errors stopped before they converged: accuracy/block.0, "
            "types/block.1");
}

TEST(ProbeTest, DoesNotDependOnTheBatches) {
  for (const Subtoken subtoken : {Subtoken::kLast, Subtoken::kMean}) {
    const ProbeOptions options = {.subtoken = subtoken};
    const AnalysisContext parts = ProbeContext(ModelM(), options);
    EXPECT_GT(parts.batches.size(), 2u);
    AnalysisContext together = parts, alone = parts;
    together.batches = {JoinRows(SplitRows(parts.batches))};
    alone.batches = SplitRows(parts.batches);
    const AnalysisResult expected = ComputedFrom(options, parts);
    for (const AnalysisContext& other : {together, alone}) {
      ExpectSameNumbers(ComputedFrom(options, other), expected, 0);
    }
  }
}

TEST(ProbeTest, LeavesNoTraceOfAStoppedPiece) {
  const ProbeOptions options = {.c = 100};
  ExpectNothingOfWhatWasStopped(options, ProbeContext(ModelM(), options));
}

// Returns the context of an analysis of the first of 60 drawn sentences.
AnalysisContext ContextOfFirst(uint64_t documents) {
  AnalysisRequest request = ProbeRequest(ModelM(), DrawnSentences(60, "abcdefg"));
  request.inputs.documents = documents;
  return *ReadAnalysisContext(request);
}

TEST(ProbeTest, SplitsSentencesInTheSameOrderForModelsThatReadMore) {
  // Returns those of the first 40 sentences that are scored if so many are read.
  const auto scored = [&](uint64_t documents) {
    const AnalysisContext analysis = ContextOfFirst(documents);
    const ProbeWords words = SelectWords(ProbeOptions(), *analysis.tagged, 5);
    std::set<size_t> sentences;
    for (size_t row = 0; row < words.of_rows.size(); ++row) {
      const size_t sentence = analysis.tagged->rows[row].sentence;
      if (sentence < 40 && words.of_rows[row].first >= words.training) sentences.insert(sentence);
    }
    return sentences;
  };
  const std::set<size_t> of_fewer = scored(40), of_all = scored(60);
  EXPECT_EQ(of_fewer.size(), 12u);
  EXPECT_GT(of_all.size(), 6u);
  const bool fewer = of_all.size() < of_fewer.size();
  const std::set<size_t>& less = fewer ? of_all : of_fewer;
  const std::set<size_t>& more = fewer ? of_fewer : of_all;
  EXPECT_TRUE(std::includes(more.begin(), more.end(), less.begin(), less.end()))
      << "both are the first ones of one order";
}

TEST(ProbeTest, ShufflesLabelsToLearnFrom) {
  const AnalysisContext analysis = ContextOfFirst(60);
  const ProbeWords all = SelectWords(ProbeOptions(), *analysis.tagged, 5);
  EXPECT_EQ(all.scored_sentences.size(), 18u);
  EXPECT_EQ(all.training_sentences, 42u);
  EXPECT_EQ(std::accumulate(all.scored_sentences.begin(), all.scored_sentences.end(), size_t{0}),
            all.words.size() - all.training);
  EXPECT_NE(ShuffledLabels(all, 1), ShuffledLabels(all, 2));
  std::vector<int64_t> labels = LabelsOf(all), shuffled = ShuffledLabels(all, 1);
  EXPECT_NE(labels, shuffled);
  const auto training = static_cast<std::ptrdiff_t>(all.training);
  EXPECT_TRUE(std::equal(labels.begin() + training, labels.end(), shuffled.begin() + training));
  std::sort(labels.begin(), labels.begin() + training);
  std::sort(shuffled.begin(), shuffled.begin() + training);
  EXPECT_EQ(labels, shuffled);
}

// Returns sentences of words with these forms and labels, each in a row of its own.
TaggedRows RowsOfWords(const std::vector<std::vector<absl::string_view>>& forms,
                       const std::vector<std::string>& labels) {
  TaggedRows rows;
  for (const auto& of : forms) {
    TaggedSentence& sentence = rows.sentences.emplace_back();
    TaggedRow& row = rows.rows.emplace_back();
    row.sentence = rows.sentences.size() - 1;
    row.words.resize(of.size());
    for (size_t i = 0; i < of.size(); ++i) {
      sentence.words.push_back({of[i], labels[i % labels.size()], "_", "_"});
    }
  }
  return rows;
}

TEST(ProbeTest, DrawsAsTheReferenceSays) {
  const TaggedRows six = RowsOfWords({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}}, {"X"});
  std::vector<absl::string_view> order;
  for (int scored = 1; scored <= 5; ++scored) {
    const ProbeWords words = SelectWords({.test = scored / 6.0}, six, 3);
    for (size_t i = words.training; i < 6; ++i) {
      const absl::string_view form = words.words[i].form;
      if (std::count(order.begin(), order.end(), form) == 0) order.push_back(form);
    }
    if (scored == 5) order.push_back(words.words[0].form);
  }
  std::string numbers;
  for (const absl::string_view form : order) absl::StrAppend(&numbers, form[0] - 'a', " ");
  ExpectRow("random-streams.md",
            "sentences 0 … 5 of `probe`, in the order in which they are scored",
            absl::StripSuffix(numbers, " "));

  std::vector<std::string> labels;
  for (int i = 0; i < 100; ++i) labels.push_back(absl::StrCat(i / 10, i % 10));
  std::vector<absl::string_view> forms(100, "x");
  forms[0] = "the";
  const ProbeWords words = SelectWords(ProbeOptions(), RowsOfWords({forms, forms}, labels), 3);
  ASSERT_EQ(words.training, 100u);
  ExpectRow("random-streams.md", "word of 100 to learn from whose label `the` has in `probe`",
            absl::StrCat(TypeLabels(words, 3)[0]));
}

TEST(ProbeTest, NeedsNoMoreThanItsCost) {
  const auto label_of = [](uint64_t letter, SplitMix64*) { return letter % 2 == 0 ? "X" : "Y"; };
  const AnalysisSubject subject = OneHotModel(16);
  // Each token is a word, so that nearly all of the state is the words' vectors.
  const AnalysisRequest large = ProbeRequest(subject, RandomWords(20'000, 16, label_of));
  auto analysis = MakeAnalysis(large);
  ASSERT_TRUE(analysis.ok()) << analysis.status();
  const AnalysisCost cost = CostOf(large, 80'000);
  EXPECT_GT((*analysis)->state_bytes(), 80'000u * 16 * 8 * 2);
  EXPECT_LE((*analysis)->state_bytes(), cost.state_bytes);
  EXPECT_GT((*analysis)->state_bytes(), cost.state_bytes / 2) << "the rest is one depth in float64";
  EXPECT_EQ(cost.forwards, 1);
  const AnalysisRequest small = ProbeRequest(subject, RandomWords(40, 16, label_of));
  EXPECT_LE(BytesOfArrays(Analyzed(small)), CostOf(small, 160).array_bytes);
}

}  // namespace
}  // namespace ablate::engine
