// Tests the drawing of a token: the oracle of temperature, top-k and top-p, the distribution of
// draws, and what draws depend on; also prompts to tokens, tokens to text, and finding samples in
// the training data.
#include "server/engine/core/analyses/sampling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;

// Returns U(seed, [n]) as the analyses define it: splitmix64 with the seed as initial state.
std::vector<double> UniformStream(uint64_t seed, size_t n) {
  SplitMix64 generator(seed);
  std::vector<double> stream;
  for (size_t i = 0; i < n; ++i) {
    stream.push_back(static_cast<double>(generator.Next() >> 11) * 0x1p-53);
  }
  return stream;
}

// 3·R(61, [7]), where R = 2U − 1.
std::vector<double> OracleLogits() {
  std::vector<double> logits = UniformStream(61, 7);
  for (double& logit : logits) logit = 3 * (2 * logit - 1);
  return logits;
}

TEST(DrawTest, UsesTheStreamThatTheAnalysesDefine) {
  const std::vector<double> stream = UniformStream(1, 3);
  EXPECT_NEAR(2 * stream[0] - 1, .1331231503, 1e-10);
  EXPECT_NEAR(2 * stream[2] - 1, .9420055072, 1e-10);
  EXPECT_EQ(UniformAt(1, 0, 0), stream[0]);
  EXPECT_EQ(UniformAt(1, 0, 2), stream[2]);
}

TEST(DrawTest, EqualsTheOracle) {
  const KeptTokens kept = Keep(OracleLogits(), {.temperature = .5, .top_k = 4, .top_p = .9});
  EXPECT_THAT(kept.tokens, ElementsAre(6, 5));
  ASSERT_EQ(kept.probabilities.size(), 2u);
  EXPECT_NEAR(kept.probabilities[0], .8252723067, 1e-10);
  EXPECT_NEAR(kept.probabilities[1], .1747276933, 1e-10);
}

TEST(DrawTest, TemperatureAloneKeepsEveryToken) {
  const KeptTokens kept = Keep(OracleLogits(), {.temperature = .5});
  double entropy = 0;
  for (const double p : kept.probabilities) entropy -= p * std::log(p);
  EXPECT_EQ(kept.tokens.size(), 7u);
  EXPECT_NEAR(entropy, .7911296936, 1e-10);
}

TEST(DrawTest, TheCutIsTheShortestPrefixThatReachesTopP) {
  const std::vector<double> logits = {std::log(.1), std::log(.5), std::log(.4)};
  EXPECT_THAT(Keep(logits, {.top_p = .5 - 1e-12}).tokens, ElementsAre(1));
  EXPECT_THAT(Keep(logits, {.top_p = .5 + 1e-12}).tokens, ElementsAre(1, 2));
  EXPECT_THAT(Keep(logits, {.top_p = 1}).tokens, ElementsAre(1, 2, 0));
}

TEST(DrawTest, TopPIsAShareOfWhatTopKLeft) {
  const std::vector<double> logits = {std::log(.1), std::log(.5), std::log(.4)};
  // 0.5 of all three, but 0.5/0.9 of these two.
  EXPECT_THAT(Keep(logits, {.top_k = 2, .top_p = .55}).tokens, ElementsAre(1));
}

TEST(DrawTest, ZeroTemperatureTakesTheLowestOfTheMostLikely) {
  const KeptTokens kept = Keep({{1.0, 3.0, 2.0, 3.0}}, {.temperature = 0});
  EXPECT_THAT(kept.tokens, ElementsAre(1));
  EXPECT_EQ(Draw(kept, .999), 1u);
}

TEST(DrawTest, EqualLogitsAreKeptInTheOrderOfTheirIds) {
  const std::vector<double> logits = {0, 1, 1, 1};
  EXPECT_THAT(Keep(logits, {.top_k = 2}).tokens, ElementsAre(1, 2));
  EXPECT_THAT(Keep(logits, {.top_k = 9}).tokens, ElementsAre(1, 2, 3, 0));
}

TEST(DrawTest, LargeLogitsDoNotOverflow) {
  const KeptTokens kept = Keep({{1e30, -1e30, 1e30}}, {.temperature = .01});
  EXPECT_THAT(kept.probabilities, Pointwise(testing::DoubleEq(), {.5, .5, 0.0}));
  EXPECT_EQ(Draw(kept, std::nextafter(1.0, 0.0)), 2u) << "what has no probability is never drawn";
}

TEST(DrawTest, InvertsTheCumulativeDistribution) {
  const KeptTokens kept = {{7, 3, 5}, {.5, .25, .25}};
  EXPECT_EQ(Draw(kept, 0), 7u);
  EXPECT_EQ(Draw(kept, std::nextafter(.5, 0.0)), 7u);
  EXPECT_EQ(Draw(kept, .5), 3u);
  EXPECT_EQ(Draw(kept, .75), 5u);
  EXPECT_EQ(Draw(kept, std::nextafter(1.0, 0.0)), 5u);
}

// Returns Pearson's chi-squared statistic of `draws` tokens against their probabilities.
double ChiSquared(const KeptTokens& kept, const std::vector<double>& counts, double draws) {
  double sum = 0;
  for (size_t i = 0; i < kept.tokens.size(); ++i) {
    const double expected = kept.probabilities[i] * draws;
    sum += (counts[kept.tokens[i]] - expected) * (counts[kept.tokens[i]] - expected) / expected;
  }
  return sum;
}

TEST(DrawTest, HundredThousandDrawsFollowTheDistribution) {
  constexpr uint32_t kDraws = 100'000;
  constexpr double kQuantile = 22.458;  // 0.999 quantile with six degrees of freedom
  const KeptTokens kept = Keep(OracleLogits(), {});
  std::vector<double> by_sample(7), by_position(7);
  for (uint32_t i = 0; i < kDraws; ++i) {
    ++by_sample[Draw(kept, UniformAt(0, i, 3))];
    ++by_position[Draw(kept, UniformAt(0, 3, i))];
  }
  EXPECT_LT(ChiSquared(kept, by_sample, kDraws), kQuantile);
  EXPECT_LT(ChiSquared(kept, by_position, kDraws), kQuantile);
}

struct BadOption {
  const char* field;
  const char* value;
  SampleOptions options;
};

TEST(SampleOptionsTest, NamesEveryOptionThatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const BadOption& bad :
       std::vector<BadOption>{{"count", "0", {.count = 0}},
                              {"count", "1001", {.count = 1001}},
                              {"count", "4294967295", {.count = 4294967295u}},
                              {"temperature", "-0.5", {.temperature = -.5}},
                              {"temperature", "100.001", {.temperature = 100.001}},
                              {"temperature", "nan", {.temperature = nan}},
                              {"temperature", "inf", {.temperature = infinity}},
                              {"top_k", "10000001", {.top_k = 10'000'001}},
                              {"top_p", "0", {.top_p = 0}},
                              {"top_p", "1.0000000000000002", {.top_p = std::nextafter(1.0, 2.0)}},
                              {"top_p", "nan", {.top_p = nan}},
                              {"max_tokens", "0", {.max_tokens = 0}},
                              {"max_tokens", "10000001", {.max_tokens = 10'000'001}},
                              {"stop", "17", {.stop = std::vector<std::string>(17, "a")}}}) {
    const std::vector<OptionProblem> problems = CheckSampleOptions(bad.options);
    ASSERT_EQ(problems.size(), 1u) << bad.field << " " << bad.value;
    EXPECT_EQ(problems[0].field, bad.field);
    EXPECT_EQ(problems[0].value, bad.value);
    EXPECT_FALSE(problems[0].allowed.empty());
  }
  EXPECT_EQ(CheckSampleOptions({.count = 0, .temperature = nan, .top_p = nan}).size(), 3u)
      << "all of them at once";
  for (const SampleOptions& good : std::vector<SampleOptions>{
           {},
           {.count = 1000, .temperature = 0, .top_k = 10'000'000, .top_p = 1e-300},
           {.max_tokens = 1},
           {.max_tokens = 10'000'000},
           {.stop = std::vector<std::string>(16, std::string(1000, 'a'))}}) {
    EXPECT_THAT(CheckSampleOptions(good), IsEmpty());
  }
}

TEST(SampleOptionsTest, NamesTheFirstBadStopString) {
  const auto message = [](const std::vector<std::string>& stop) {
    const std::vector<OptionProblem> problems = CheckSampleOptions({.stop = stop});
    EXPECT_EQ(problems.size(), 1u);
    return problems[0].field + ": " + problems[0].complaint + "; expected " + problems[0].allowed;
  };
  EXPECT_EQ(message(std::vector<std::string>(17)), "stop: it has 17 strings; expected at most 16");
  EXPECT_EQ(message({"a", "", ""}), "stop[1]: it has 0 bytes; expected 1 to 1,000 bytes of UTF-8");
  EXPECT_EQ(message({std::string(1001, 'a')}),
            "stop[0]: it has 1001 bytes; expected 1 to 1,000 bytes of UTF-8");
  EXPECT_EQ(message({"a\xff"}), "stop[0]: it is not UTF-8; expected 1 to 1,000 bytes of UTF-8");
}

TEST(SampleOptionsTest, RefusesAPromptInTwoForms) {
  SampleOptions options;
  options.prompt = "a";
  EXPECT_TRUE(CheckSampleOptions(options).empty());
  options.prompt_ids = {0};
  const std::vector<OptionProblem> problems = CheckSampleOptions(options);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field, "prompt_ids");
  EXPECT_EQ(problems[0].complaint, "prompt and prompt_ids are both given");
  options.prompt.clear();
  EXPECT_TRUE(CheckSampleOptions(options).empty());
}

const std::u32string kAlphabet = U"abé€😀";
const TextCodec kCharacters = {&kAlphabet, nullptr};

// Returns the tokens of a prompt that has no problem.
std::vector<uint32_t> Encoded(absl::string_view prompt, const TextCodec& codec, uint32_t most) {
  std::vector<uint32_t> tokens = {77};
  EXPECT_FALSE(EncodePrompt(prompt, codec, most, &tokens).has_value()) << prompt;
  return tokens;
}

// Returns the problem of a prompt.
std::string Problem(absl::string_view prompt, const TextCodec& codec, uint32_t most) {
  std::vector<uint32_t> tokens;
  const auto problem = EncodePrompt(prompt, codec, most, &tokens);
  if (!problem.has_value()) return "";
  return problem->field + ": " + problem->complaint + "; expected " + problem->allowed;
}

TEST(EncodePromptTest, FindsEveryCharacter) {
  EXPECT_THAT(Encoded("bé€😀a", kCharacters, 9), ElementsAre(1, 2, 3, 4, 0));
  EXPECT_THAT(Encoded("", kCharacters, 0), IsEmpty());
}

TEST(EncodePromptTest, NamesWhatCanNotBe) {
  const auto message = [](absl::string_view prompt, uint32_t most) {
    return Problem(prompt, kCharacters, most);
  };
  EXPECT_EQ(
      message("abC", 9),
      "prompt: character 3, \"C\" U+0043, is not in the run's data; expected its 5 characters");
  EXPECT_EQ(
      message("éß", 9),
      "prompt: character 2, \"ß\" U+00DF, is not in the run's data; expected its 5 characters");
  EXPECT_EQ(message("\x1b[2J", 9),
            "prompt: character 1, U+001B, is not in the run's data; expected its 5 characters");
  EXPECT_EQ(message("a\xff", 9), "prompt: it is not UTF-8 at byte 1; expected text in UTF-8");
  EXPECT_EQ(message("abab", 3),
            "prompt: it has 4 characters; expected at most 3, one less than the model's context");
}

std::shared_ptr<const tokenizer::BytePairEncoding> ExampleEncoding() {
  const std::string folder = absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe/");
  return *tokenizer::BytePairEncoding::Read(folder + "vocab.json", folder + "merges.txt");
}

TEST(EncodePromptTest, CountsTheTokensOfAnEncoding) {
  const TextCodec codec = {nullptr, ExampleEncoding()};
  const std::string prompt = "the king é😀\n";
  const std::vector<uint32_t> tokens = Encoded(prompt, codec, 100);
  EXPECT_LT(tokens.size(), prompt.size());
  EXPECT_EQ(codec.TextOf(tokens), prompt);
  const auto few = static_cast<uint32_t>(tokens.size() - 1);
  EXPECT_EQ(Problem(prompt, codec, few),
            absl::StrCat("prompt: it has ", tokens.size(), " tokens; expected at most ", few,
                         ", one less than the model's context"));
  EXPECT_EQ(Problem("a\xff", codec, 9),
            "prompt: it is not UTF-8 at byte 1; expected text in UTF-8");
}

TEST(TextCodecTest, ReplacesBytesThatAreNoCharacter) {
  const TextCodec codec = {nullptr, ExampleEncoding()};
  std::vector<uint32_t> tokens = Encoded("a😀", codec, 100);
  tokens.pop_back();
  EXPECT_THAT(codec.TextOf(tokens), ::testing::StartsWith("a\xEF\xBF\xBD"));
}

TEST(TextCodecTest, EndsOfTokensAreThoseOfTheirBytes) {
  const TextCodec codec = {nullptr, ExampleEncoding()};
  const std::vector<uint32_t> tokens = Encoded("the é😀\n", codec, 100);
  const std::vector<size_t> ends = codec.EndsOf(tokens);
  ASSERT_EQ(ends.size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(ends[i], codec.BytesOf(absl::MakeConstSpan(tokens).first(i + 1)).size()) << i;
  }
  EXPECT_EQ(kCharacters.EndsOf({1, 5, 0}), (std::vector<size_t>{1, 1, 2})) << "a boundary has none";
}

TEST(TextCodecTest, AnIdWithoutTextHasNoBytes) {
  EXPECT_EQ(kCharacters.TextOf({1, 5, 4'000'000'000, 0}), "ba");
  const TextCodec codec = {nullptr, ExampleEncoding()};
  EXPECT_EQ(codec.BytesOf({codec.encoding->vocabulary(), 4'000'000'000}), "");
}

TEST(PromptOfTest, TakesIdsOrEncodesTheText) {
  ModelConfig model;
  model.vocabulary = 8;
  model.context = 4;
  SampleOptions options;
  EXPECT_THAT(*PromptOf(options, kCharacters, model), IsEmpty());
  options.prompt = "éa";
  EXPECT_THAT(*PromptOf(options, kCharacters, model), ElementsAre(2, 0));
  options.prompt.clear();
  options.prompt_ids = {7, 0, 2};  // 7 stands for no text
  EXPECT_THAT(*PromptOf(options, kCharacters, model), ElementsAre(7, 0, 2));
  options.prompt_ids = {7, 8, 9};
  EXPECT_EQ(PromptOf(options, kCharacters, model).status(),
            absl::InvalidArgumentError("prompt_ids: id 2, 8, is not in the model's vocabulary; "
                                       "expected ids below 8, its size"));
  options.prompt_ids = {4'294'967'295};
  EXPECT_FALSE(PromptOf(options, kCharacters, model).ok());
  options.prompt_ids = {0, 0, 0, 0};
  EXPECT_EQ(PromptOf(options, kCharacters, model).status(),
            absl::InvalidArgumentError("prompt_ids: it has 4 ids; expected at most 3, one less "
                                       "than the model's context"));
}

TEST(OpeningTest, OfAnEncodingBeginsWithALineFeed) {
  TokenizedText text;
  text.encoding = ExampleEncoding();
  const auto opening = OpeningOf({nullptr, &text}, {});
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(SampledData({nullptr, &text}).codec().TextOf(opening->tokens), "\n");
  EXPECT_EQ(opening->hidden, 1u);
}

// Ten documents, "a" to "j"; the last three in the seed's order are held out.
TokenizedDocuments Letters() { return *TokenizeDocuments("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"); }

Draft DraftOf(std::vector<uint32_t> tokens) { return {std::move(tokens), 1, true}; }

TEST(SampleWriterTest, FindsTrainingDocumentsAndNoHeldOutOnes) {
  const TokenizedDocuments documents = Letters();
  constexpr uint32_t kSeed = 5;
  SampleWriter writer(documents, 3, kSeed);
  std::vector<Draft> drafts;
  for (uint32_t letter = 0; letter < 10; ++letter) drafts.push_back(DraftOf({letter}));
  const std::vector<Sample> samples = writer.Write(drafts);
  const std::vector<uint32_t> order = PythonShuffle(10, kSeed);
  for (size_t place = 0; place < order.size(); ++place) {
    EXPECT_EQ(samples[order[place]].in_training_data, place < 7) << place;
  }
  EXPECT_EQ(writer.counts().in_training_data, 7u);
  EXPECT_EQ(writer.counts().distinct, 10u);
}

TEST(SampleWriterTest, AWholeDocumentIsFoundButNoPartOfOne) {
  const TokenizedDocuments documents = *TokenizeDocuments("abc\nab\n");
  SampleWriter writer(documents, 0, 0);
  const std::vector<Sample> samples =
      writer.Write({DraftOf({0, 1}), DraftOf({0}), DraftOf({}), DraftOf({0, 1, 2, 0})});
  EXPECT_TRUE(samples[0].in_training_data);
  for (size_t i = 1; i < samples.size(); ++i) EXPECT_FALSE(samples[i].in_training_data) << i;
}

TEST(SampleWriterTest, WritesTheTextBeforeTheStopString) {
  const TokenizedDocuments documents = *TokenizeDocuments("aé\né€\n");
  SampleWriter writer(documents, 0, 0);
  const uint32_t bos = documents.bos();
  // The boundary and "a" are given; "é€" are drawn and "é" or "€" stops.
  Draft at_once = {{bos, 0, 1, 2}, 2, false, 1, "é€", 5, "é€"};
  Draft later = {{bos, 0, 1, 2}, 2, false, 1, "é€", 3, "€"};
  const std::vector<Sample> samples = writer.Write({at_once, later});
  EXPECT_EQ(samples[0].text, "a");
  EXPECT_EQ(samples[0].stop, "é€");
  EXPECT_FALSE(samples[0].in_training_data);
  EXPECT_EQ(samples[1].text, "aé");
  EXPECT_EQ(samples[1].stop, "€");
  EXPECT_TRUE(samples[1].in_training_data) << "the text is a document";
  EXPECT_THAT(samples[1].token_ids, ElementsAre(1, 2));
  EXPECT_EQ(samples[1].tokens, 2u);
  EXPECT_EQ(writer.counts().distinct, 2u);
}

TEST(SampleWriterTest, ListsTheDrawnTokensWithTheBoundary) {
  const TokenizedDocuments documents = *TokenizeDocuments("ab\n");
  SampleWriter writer(documents, 0, 0);
  const std::vector<Sample> samples =
      writer.Write({{{2, 0, 1}, 2, true, 1}, {{2, 0, 1}, 1, false, 1}});
  EXPECT_THAT(samples[0].token_ids, ElementsAre(1, 2));
  EXPECT_THAT(samples[1].token_ids, ElementsAre(1));
  EXPECT_EQ(samples[1].stop, "");
}

// A document is found by its text, in whatever tokens it was drawn.
TEST(SampleWriterTest, FindsDocumentsOfAnEncoding) {
  const auto encoding = ExampleEncoding();
  const TokenizedDocuments documents = *EncodeDocuments("the king\nking\n", encoding);
  const uint32_t bos = documents.bos();
  SampleWriter writer(documents, 0, 0);
  Draft whole = {{bos}, 0, true, 1};
  whole.tokens.insert(whole.tokens.end(), documents.tokens.begin(), documents.tokens.end() - 1);
  whole.tokens.resize(1 + documents.starts[1]);
  whole.drawn = static_cast<uint32_t>(documents.starts[1]) + 1;
  Draft bytes = {{bos}, 7, false, 1, "kingdom", 3, "dom"};
  for (const unsigned char byte : std::string("kingdom")) {
    bytes.tokens.push_back(encoding->TokenOf(byte));
  }
  const Draft beginning = {{bos, encoding->TokenOf('k')}, 1, false, 1};
  const std::vector<Sample> samples = writer.Write({whole, bytes, beginning});
  EXPECT_EQ(samples[0].text, "the king");
  EXPECT_TRUE(samples[0].in_training_data);
  EXPECT_EQ(samples[0].token_ids.back(), bos);
  EXPECT_EQ(samples[1].text, "king") << "up to the stop string";
  EXPECT_TRUE(samples[1].in_training_data);
  EXPECT_FALSE(samples[2].in_training_data);
}

// Bytes of a character may be spread over the prompt, drawn tokens, and the text that is cut.
TEST(SampleWriterTest, JoinsTheBytesOfAnEncoding) {
  TokenizedText text;
  text.encoding = ExampleEncoding();
  SampleWriter writer(text);
  std::vector<uint32_t> tokens;
  for (const unsigned char byte : std::string("😀é.")) {
    tokens.push_back(text.encoding->TokenOf(byte));
  }
  Draft whole = {tokens, 5, false};
  Draft cut = {tokens, 5, false, 0, "\x98\x80é.", 2, "\xA9."};
  const std::vector<Sample> samples = writer.Write({whole, cut});
  EXPECT_EQ(samples[0].text, "😀é.");
  EXPECT_EQ(samples[1].text, "😀\uFFFD");
  EXPECT_EQ(*text.encoding->Decode(samples[1].token_ids), "\x98\x80é.");
}

TEST(SampleWriterTest, NumbersAndCountsOverSeveralGroups) {
  const TokenizedDocuments documents = *TokenizeDocuments("é€\n");
  SampleWriter writer(documents, 0, 0);
  writer.Write({DraftOf({0, 1}), DraftOf({1})});
  const std::vector<Sample> samples = writer.Write({DraftOf({1}), DraftOf({0, 1})});
  EXPECT_EQ(samples[0].index, 2u);
  EXPECT_EQ(samples[0].text, "€");
  EXPECT_EQ(samples[1].text, "é€");
  EXPECT_EQ(writer.counts().distinct, 2u);
  EXPECT_EQ(writer.counts().in_training_data, 2u);
}

}  // namespace
}  // namespace ablate::engine
