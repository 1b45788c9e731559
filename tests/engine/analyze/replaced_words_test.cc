#include "server/engine/analyze/replaced_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

const std::u32string kAlphabet = U"\n abcdehnrstuwxyz";
const TextCodec kCharacterCodec = {&kAlphabet, nullptr};
constexpr int64_t kContext = 64;

TextCodec CodecOf(const tokenizer::SmallTokenizer& tokenizer) {
  return {nullptr, tokenizer.Make()};
}

// Returns a row whose last token is a target, unless it is of a prompt.
TokenBatch RowOfTokens(const std::vector<uint32_t>& tokens, bool is_prompt = false) {
  TokenBatch row;
  row.rows = 1;
  row.length = static_cast<int64_t>(tokens.size()) - (is_prompt ? 0 : 1);
  row.lengths = {row.length};
  row.inputs.assign(tokens.begin(), tokens.begin() + row.length);
  row.targets.assign(tokens.begin() + 1, tokens.end());
  if (is_prompt) row.targets.push_back(TokenBatch::kIgnored);
  return row;
}

TokenBatch RowOfText(const std::string& text, const TextCodec& codec, bool is_prompt = false) {
  std::vector<uint32_t> tokens;
  EXPECT_FALSE(EncodePrompt(text, codec, 1000, &tokens).has_value());
  return RowOfTokens(tokens, is_prompt);
}

std::vector<uint32_t> TokensIn(const TokenBatch& row) {
  std::vector<uint32_t> tokens(row.inputs.begin(), row.inputs.end());
  if (row.targets.back() != TokenBatch::kIgnored) {
    tokens.push_back(static_cast<uint32_t>(row.targets.back()));
  }
  return tokens;
}

std::string TextIn(const TokenBatch& row, const TextCodec& codec) {
  return codec.BytesOf(TokensIn(row));
}

Words SplitText(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

// Returns the targets that stayed, and checks that they are the same tokens in both rows.
std::vector<uint32_t> StayedIn(const TokenBatch& row, const ReplacedRow& replaced) {
  std::vector<uint32_t> targets;
  for (const ReplacedRow::Stayed& stayed : replaced.stayed) {
    const int64_t target = replaced.row.targets.at(static_cast<size_t>(stayed.position));
    EXPECT_EQ(target, row.targets.at(static_cast<size_t>(stayed.original)));
    targets.push_back(static_cast<uint32_t>(target));
  }
  return targets;
}

TEST(ReplacedCountTest, IsTheFloorButAtLeastOne) {
  EXPECT_EQ(ReplacedCount(0.29, 100), 29u) << "0.29·100 is below 29 in float64";
  EXPECT_EQ(ReplacedCount(0.58, 50), 29u);
  EXPECT_EQ(ReplacedCount(0.07, 100), 7u);
  EXPECT_EQ(ReplacedCount(0.19, 10), 1u);
  EXPECT_EQ(ReplacedCount(0.01, 10), 1u);
  EXPECT_EQ(ReplacedCount(1, 10), 10u);
  EXPECT_EQ(ReplacedCount(0, 10), 0u);
  EXPECT_EQ(ReplacedCount(0.5, 0), 0u);
}

TEST(WordReplacerTest, ReplacesWordsByThreeLetters) {
  WordReplacer replacer(kCharacterCodec, kContext);
  const std::string text = "the  red bat\n sat weather then   ";
  const TokenBatch row = RowOfText(text, kCharacterCodec);
  EXPECT_EQ(replacer.WordsOf(row).words.size(), 6u);
  const Words before = SplitText(text);
  for (const size_t count : {1u, 3u, 6u}) {
    const ReplacedRow replaced = replacer.Replace(row, static_cast<double>(count) / 6, 5);
    const std::string changed = TextIn(replaced.row, kCharacterCodec);
    const Words after = SplitText(changed);
    ASSERT_EQ(after.size(), 6u);
    std::string stays;
    size_t differ = 0;
    for (size_t i = 0; i < 6; ++i) {
      if (after[i] != before[i]) {
        ++differ;
        EXPECT_EQ(after[i].size(), 3u);
        EXPECT_TRUE(std::all_of(after[i].begin(), after[i].end(), absl::ascii_islower));
      } else {
        stays += i == 0 ? after[i].substr(1) : after[i];  // the first token is no target
      }
    }
    EXPECT_EQ(differ, count);
    EXPECT_EQ(kCharacterCodec.BytesOf(StayedIn(row, replaced)), stays);
    // White space stays.
    EXPECT_TRUE(changed.ends_with("   "));
    EXPECT_NE(changed.find("  "), std::string::npos);
    EXPECT_NE(changed.find("\n "), std::string::npos);
  }
}

TEST(WordReplacerTest, BoundsTheTokensOfARow) {
  const tokenizer::SmallTokenizer tokenizer{{"Ġ a", "b c", "Ġa bc", "d e", "Ġ d"}, {}};
  for (const TextCodec& codec : {kCharacterCodec, CodecOf(tokenizer)}) {
    WordReplacer replacer(codec, kContext);
    for (const std::string& text :
         {std::string("a abc  bat\n de ab x de"), std::string(" a a a a abc abc\n\n"),
          std::string("weather then")}) {
      const TokenBatch row = RowOfText(text, codec);
      for (const double fraction : {0.0, 0.3, 1.0}) {
        const size_t bound = replacer.MostTokens(row, fraction);
        for (uint64_t seed = 0; seed < 50; ++seed) {
          EXPECT_LE(replacer.Replace(row, fraction, seed).row.inputs.size(), bound) << text;
        }
      }
      EXPECT_EQ(replacer.MostTokens(row, 0), row.inputs.size());
    }
  }
  const TokenBatch letters = RowOfText("a b c d", kCharacterCodec);
  WordReplacer replacer(kCharacterCodec, kContext), narrow(kCharacterCodec, 9);
  EXPECT_EQ(replacer.MostTokens(letters, 0.5), 6u + 2 * 2);
  EXPECT_EQ(replacer.MostTokens(letters, 1), 6u + 4 * 2);
  EXPECT_EQ(replacer.Replace(letters, 1, 3).row.inputs.size(), 6u + 4 * 2);
  EXPECT_EQ(narrow.MostTokens(letters, 1), 9u) << "rows are cut to the context";
}

TEST(WordReplacerTest, NestsTheWordsOfLevels) {
  WordReplacer replacer(kCharacterCodec, 256);
  Words words;
  for (int i = 0; i < 40; ++i) words.push_back(std::string(static_cast<size_t>(4 + i % 3), 'e'));
  const TokenBatch row = RowOfText(absl::StrJoin(words, " "), kCharacterCodec);
  for (const uint64_t seed : {1u, 2u}) {
    Words last;
    for (const double fraction : {1.0, 0.6, 0.3, 0.05, 0.0}) {
      const Words now =
          SplitText(TextIn(replacer.Replace(row, fraction, seed).row, kCharacterCodec));
      ASSERT_EQ(now.size(), 40u);
      size_t replaced = 0;
      for (size_t i = 0; i < 40; ++i) {
        if (now[i] == words[i]) continue;
        ++replaced;
        if (last.empty()) continue;
        EXPECT_EQ(now[i], last[i]) << "the same letters at each level";
      }
      EXPECT_EQ(replaced, ReplacedCount(fraction, 40));
      last = now;
    }
  }
  EXPECT_NE(replacer.Replace(row, 0.3, 1).row.inputs, replacer.Replace(row, 0.3, 2).row.inputs);
}

TEST(WordReplacerTest, ChoosesEachWordAndLetterAlikeOften) {
  WordReplacer replacer(kCharacterCodec, kContext);
  const TokenBatch row = RowOfText("bbbb cccc dddd rrrr", kCharacterCodec);
  std::vector<int> times(4);
  std::map<char, int> letters;
  constexpr int kDraws = 4000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const Words words =
        SplitText(TextIn(replacer.Replace(row, 0.25, seed * 77).row, kCharacterCodec));
    for (size_t i = 0; i < 4; ++i) {
      if (words[i].size() == 4) continue;
      ++times[i];
      for (const char letter : words[i]) ++letters[letter];
    }
  }
  for (const int each : times) EXPECT_NEAR(each, 1000, 120);  // 4.4 standard deviations
  EXPECT_EQ(letters.size(), 15u);
  for (const auto& [letter, count] : letters) {
    EXPECT_NEAR(count, 3 * kDraws / 15, 130) << letter;
  }
}

TEST(WordReplacerTest, SeparatesWordsByBoundaries) {
  WordReplacer replacer(kCharacterCodec, kContext);
  const auto bos = static_cast<uint32_t>(kAlphabet.size());
  std::vector<uint32_t> tokens = {bos, 2, 3, 4, 5, bos, 6, 7, bos};
  const TokenBatch row = RowOfTokens(tokens);
  ASSERT_EQ(replacer.WordsOf(row).words.size(), 2u);
  const ReplacedRow all = replacer.Replace(row, 1, 3);
  const std::vector<uint32_t> changed = TokensIn(all.row);
  ASSERT_EQ(changed.size(), 9u);
  for (const size_t at : {0u, 4u, 8u}) EXPECT_EQ(changed[at], bos);
  EXPECT_THAT(all.stayed, IsEmpty());
  const ReplacedRow none = replacer.Replace(row, 0, 3);
  EXPECT_EQ(none.row.inputs, row.inputs);
  EXPECT_EQ(none.row.targets, row.targets);
  EXPECT_THAT(StayedIn(row, none), ElementsAre(2, 3, 4, 5, 6, 7)) << "no boundary is in a word";
}

// The word that the context cuts is compared in neither row.
TEST(WordReplacerTest, ComparesWholeWordsInBothRows) {
  const std::string text = "a a a a a a test";  // 16 characters
  WordReplacer replacer(kCharacterCodec, 15);
  const TokenBatch row = RowOfText(text, kCharacterCodec);
  ASSERT_EQ(row.length, 15);
  bool is_cut = false;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ReplacedRow replaced = replacer.Replace(row, 0.15, seed);  // one of seven
    const std::string changed = TextIn(replaced.row, kCharacterCodec);
    EXPECT_LE(replaced.row.length, 15);
    const std::string stayed = kCharacterCodec.BytesOf(StayedIn(row, replaced));
    if (changed.ends_with(" te")) {
      is_cut = true;
      EXPECT_EQ(stayed.find('t'), std::string::npos);
    } else {
      EXPECT_EQ(changed.size(), 15u) << "the last word is shorter by one";
    }
  }
  EXPECT_TRUE(is_cut);
}

TEST(WordReplacerTest, KeepsAPromptWithoutALastTarget) {
  WordReplacer replacer(kCharacterCodec, 10);
  const TokenBatch row = RowOfText("bad a a a", kCharacterCodec, true);
  const ReplacedRow replaced = replacer.Replace(row, 1, 2);
  EXPECT_EQ(replaced.row.length, 10);
  EXPECT_EQ(replaced.row.targets.back(), TokenBatch::kIgnored);
  EXPECT_EQ(replaced.row.targets.size(), replaced.row.inputs.size());
}

TEST(WordReplacerTest, ReplacesNothingWithoutAWord) {
  WordReplacer replacer(kCharacterCodec, kContext);
  for (const char* text : {"  \n  ", "  "}) {
    const TokenBatch row = RowOfText(text, kCharacterCodec);
    const ReplacedRow replaced = replacer.Replace(row, 1, 2);
    EXPECT_EQ(replaced.row.inputs, row.inputs);
    EXPECT_EQ(replaced.row.targets, row.targets);
    EXPECT_THAT(replaced.stayed, IsEmpty());
  }
}

TEST(WordReplacerTest, UsesCharactersOfAnAlphabetWithoutLetters) {
  const std::u32string greek = U"\n αβγ";
  const TextCodec codec = {&greek, nullptr};
  WordReplacer replacer(codec, kContext);
  const TokenBatch row = RowOfText("αα βββ γ", codec);
  const ReplacedRow replaced = replacer.Replace(row, 1, 2);
  const std::vector<uint32_t> tokens = TokensIn(replaced.row);
  ASSERT_EQ(tokens.size(), 11u);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i] == 1, i % 4 == 3);
    EXPECT_NE(tokens[i], 0u);
  }
}

// Encodes " the" and " then" as single tokens.
TextCodec SmallCodec() { return CodecOf({{"Ġ t", "h e", "Ġt he", "Ġthe n", "Ã ©"}, {"<|end|>"}}); }

TEST(WordReplacerTest, EncodesReplacedWordsAsTheWholeText) {
  const TextCodec codec = SmallCodec();
  WordReplacer replacer(codec, 400);
  const std::string text = "the cat then  the then, é\n\tthen (the) don't   the end\n\n";
  const TokenBatch row = RowOfText(text, codec);
  EXPECT_EQ(replacer.WordsOf(row).words.size(), 11u);
  EXPECT_EQ(replacer.WordsOf(row).left_out, 0u);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ReplacedRow replaced = replacer.Replace(row, 0.5, seed);
    EXPECT_EQ(SplitText(TextIn(replaced.row, codec)).size(), 11u);
    EXPECT_EQ(TokensIn(RowOfText(TextIn(replaced.row, codec), codec)), TokensIn(replaced.row));
    const Words before = SplitText(text), after = SplitText(TextIn(replaced.row, codec));
    size_t same = 0;
    std::string stays;
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] != before[i]) continue;
      ++same;
      // The first word has the token "t", which is no target.
      stays += i == 0 ? after[i].substr(1) : after[i];
    }
    EXPECT_EQ(same, 6u);
    std::string stayed = codec.BytesOf(StayedIn(row, replaced));
    stayed.erase(std::remove(stayed.begin(), stayed.end(), ' '), stayed.end());
    EXPECT_EQ(stayed, stays);
  }
}

TEST(WordReplacerTest, KeepsTokensThatAnEncoderWouldNotMake) {
  const TextCodec codec = SmallCodec();
  WordReplacer replacer(codec, kContext);
  // The first and the last word are parts of longer ones, as in a window. "the" is not merged.
  std::vector<uint32_t> tokens = {0xA9, ' ', 't', 'h', 'e', ' ', 'n', 'o', ' ', 'y', 0xC3};
  const TokenBatch row = RowOfTokens(tokens);
  ASSERT_EQ(replacer.WordsOf(row).words.size(), 4u);
  const ReplacedRow none = replacer.Replace(row, 0, 1);
  EXPECT_EQ(none.row.inputs, row.inputs);
  EXPECT_EQ(none.row.targets, row.targets);
  EXPECT_THAT(StayedIn(row, none), ElementsAre('t', 'h', 'e', 'n', 'o', 'y', 0xC3));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ReplacedRow one = replacer.Replace(row, 0.25, seed);
    EXPECT_GE(one.stayed.size(), 4u);
    StayedIn(row, one);
  }
}

TEST(WordReplacerTest, TakesSpecialTokensForBoundaries) {
  const TextCodec codec = SmallCodec();
  WordReplacer replacer(codec, kContext);
  const uint32_t end = codec.encoding->special()[0];
  const TokenBatch row = RowOfTokens({'a', 'b', end, 'c', end, end, 'd', 'e'});
  ASSERT_EQ(replacer.WordsOf(row).words.size(), 3u);
  const std::vector<uint32_t> tokens = TokensIn(replacer.Replace(row, 1, 1).row);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), end), 3);
  EXPECT_EQ(tokens.size(), 12u);
  const TokenBatch several = RowOfTokens({'a', 'b', end, 'c', ' ', 'd', ' ', 'e', 'f', ' ', 'g'});
  EXPECT_EQ(replacer.WordsOf(several).left_out, 0u);
  ASSERT_EQ(replacer.WordsOf(several).words.size(), 5u);
  EXPECT_EQ(replacer.WordsOf(several).words[3].first, 7u);
  EXPECT_EQ(replacer.WordsOf(several).words[3].end, 9u);
  EXPECT_THAT(StayedIn(several, replacer.Replace(several, 0, 1)),
              ElementsAre('b', 'c', 'd', 'e', 'f', 'g'));
}

TEST(WordReplacerTest, LeavesOutWordsThatShareAToken) {
  // Merges of random letters and spaces make tokens such as "a b" only inside other white space
  // than GPT-2's, so the tokens are put together by hand.
  tokenizer::SmallTokenizer tokenizer = {{"a Ġ", "aĠ b"}, {}};
  const TextCodec codec = CodecOf(tokenizer);
  WordReplacer replacer(codec, kContext);
  ASSERT_EQ(codec.encoding->TextOf(257), "a b");
  const TokenBatch row = RowOfTokens({'x', ' ', 257, 'c', ' ', 'y', ' ', 256, 'z'});
  const SequenceWords words = replacer.WordsOf(row);
  EXPECT_EQ(words.left_out, 2u);  // a, bc
  ASSERT_EQ(words.words.size(), 4u);
  const ReplacedRow all = replacer.Replace(row, 1, 1);
  const std::string text = TextIn(all.row, codec);
  EXPECT_NE(text.find(" a bc "), std::string::npos);
  EXPECT_EQ(SplitText(text).size(), 6u);
  EXPECT_THAT(all.stayed, IsEmpty());
  EXPECT_EQ(replacer.Replace(row, 0, 1).stayed.size(), 3u) << "y, a and z";
}

TEST(WordReplacerTest, KeepsAnInputIfOneTokenIsLeft) {
  tokenizer::SmallTokenizer tokenizer;
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b)
      tokenizer.merges.push_back(absl::StrCat(std::string(1, a), " ", std::string(1, b)));
  }
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) {
      for (char c = 'a'; c <= 'z'; ++c) {
        tokenizer.merges.push_back(absl::StrCat(std::string({a, b}), " ", std::string(1, c)));
      }
    }
  }
  const TextCodec codec = CodecOf(tokenizer);
  WordReplacer replacer(codec, 1);
  const ReplacedRow replaced = replacer.Replace(RowOfTokens({'q', '!'}), 1, 1);
  EXPECT_EQ(replaced.row.length, 1);
  EXPECT_THAT(replaced.row.targets, ElementsAre(TokenBatch::kIgnored));
  EXPECT_EQ(TextIn(replaced.row, codec).size(), 3u);
}

TEST(TextCodecTest, EndsOfTokensAreThoseOfTheirBytes) {
  const std::u32string alphabet = U"aé😀";
  EXPECT_THAT((TextCodec{&alphabet, nullptr}).EndsOf({0, 1, 3, 2}), ElementsAre(1, 3, 3, 7));
  const TextCodec codec = SmallCodec();
  const TokenBatch row = RowOfText("the then é", codec, true);
  const std::vector<uint32_t> tokens(row.inputs.begin(), row.inputs.end());
  EXPECT_EQ(codec.EndsOf(tokens).back(), codec.BytesOf(tokens).size());
  EXPECT_THAT(codec.EndsOf({}), IsEmpty());
}

}  // namespace
}  // namespace ablate::engine
