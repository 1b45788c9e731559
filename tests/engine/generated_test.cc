// Prompts into tokens, tokens into text, and what counts as found in the training data.
#include "server/engine/analyze/generated.h"

#include <gmock/gmock.h>

#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::u32string kAlphabet = U"abé€😀";

TEST(EncodePromptTest, FindsEveryCharacter) {
  EXPECT_THAT(*EncodePrompt("bé€😀a", kAlphabet, 9), ElementsAre(1, 2, 3, 4, 0));
  EXPECT_THAT(*EncodePrompt("", kAlphabet, 0), IsEmpty());
}

TEST(EncodePromptTest, NamesWhatCanNotBe) {
  const auto message = [](absl::string_view prompt, uint32_t most) {
    return std::string(EncodePrompt(prompt, kAlphabet, most).status().message());
  };
  EXPECT_EQ(
      message("abC", 9),
      "prompt: character 3, \"C\" U+0043, is not in the run's data; allowed: its 5 characters");
  EXPECT_EQ(
      message("éß", 9),
      "prompt: character 2, \"ß\" U+00DF, is not in the run's data; allowed: its 5 characters");
  EXPECT_EQ(message("\x1b[2J", 9),
            "prompt: character 1, U+001B, is not in the run's data; allowed: its 5 characters");
  EXPECT_EQ(message("a\xff", 9), "prompt: it is not UTF-8 at byte 1; allowed: text in UTF-8");
  EXPECT_EQ(message("abab", 3),
            "prompt: it has 4 characters; allowed: at most 3, one less than the model's context");
}

// Ten documents, "a" to "j"; the last three of the seed's order are held out.
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
