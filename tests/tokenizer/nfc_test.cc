// Tests normalization: closed cases, text in pieces. tokenizer_reference_test.cc compares texts
// with the tokenizers package.
#include "base/tokenizer/nfc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/tokenizer/word_splitter.h"
#include "tests/tokenizer/mixed_text.h"

namespace ablate::tokenizer {
namespace {

// Normalizes a text that is given in pieces of up to `longest` bytes.
std::string OfPieces(const Nfc& nfc, absl::string_view text, unsigned seed, size_t longest) {
  std::mt19937 random(seed);
  std::string held, normal;
  while (!text.empty()) {
    const size_t size = std::min<size_t>(random() % (longest + 1), text.size());
    held.append(text.data(), size);
    text.remove_prefix(size);
    held.erase(0, nfc.Append(held, false, &normal));
  }
  EXPECT_EQ(nfc.Append(held, true, &normal), held.size());
  return normal;
}

TEST(NfcTest, ComposesAndOrdersCharacters) {
  const Nfc nfc;
  const std::string cases[][2] = {
      {"", ""},
      {"plain text\n", "plain text\n"},
      {"e\u0301 naïve", "é naïve"},
      {"a\u0301\u0323b", "ạ\u0301b"},  // marks are ordered by their class
      {"a\u0345\u0301", "á\u0345"},    // composes past a mark of another class
      {"a\u0334\u0301", "á\u0334"},
      {"a\u0308\u0304", "ǟ"},                        // twice
      {"a\u0301\u0301", "á\u0301"},                  // a mark of the same class is in the way
      {"\u212B\u2126\u037E", "ÅΩ;"},                 // one character replaces another
      {"\u0958\u0344", "\u0915\u093C\u0308\u0301"},  // never composed
      {"\u1112\u1161\u11AB\u1100\u1161", "한가"},
      {"\uAC00\u11A8\u11A8", "각\u11A8"},
      {"\u0301e\u0301", "\u0301é"},
      {"<\u0338", "≮"},
      {"\U00011935\U00011930", "\U00011935\U00011930"},  // of a later version of Unicode
      {"\xC3\u0301e\u0301\xFF", "\xC3\u0301é\xFF"},      // bytes that aren't characters stay
  };
  for (const auto& [text, normal] : cases) {
    EXPECT_EQ(nfc.Of(text), normal);
    EXPECT_EQ(nfc.Of(normal), normal);
  }
}

TEST(NfcTest, NormalizesPiecesAsTheWholeText) {
  const Nfc nfc;
  for (const unsigned seed : {1, 2, 3}) {
    for (const std::string& text :
         {MixedText(seed, 30'000), DamagedText(seed, 30'000), CombiningText(seed, 30'000)}) {
      const std::string normal = nfc.Of(text);
      EXPECT_TRUE(nfc.Of(normal) == normal) << seed;
      for (const size_t longest : {1, 2, 7, 1000}) {
        EXPECT_TRUE(OfPieces(nfc, text, seed, longest) == normal) << seed << " " << longest;
      }
    }
  }
}

TEST(NfcTest, CutsVeryLongSequences) {
  const Nfc nfc;
  std::string marks = "a";
  while (marks.size() <= WordSplitter::kMaxWordBytes) marks += "\u0301";
  std::string normal;
  EXPECT_GT(nfc.Append(marks, false, &normal), WordSplitter::kMaxWordBytes - 4);
  EXPECT_EQ(normal.substr(0, 4), "á\u0301");
}

}  // namespace
}  // namespace ablate::tokenizer
