// Tests the search for stop strings in text that grows.
#include "server/engine/core/analyses/stop_strings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ablate::engine {
namespace {

using Stops = std::vector<std::string>;

// Searches each time after one of `tokens` was appended. Returns "TEXT|STOP" with the text before
// the occurrence, or the whole text if there is none.
std::string Cut(const std::vector<std::string>& tokens, const Stops& stops) {
  std::string text;
  for (const std::string& token : tokens) {
    const size_t searched = text.size();
    text += token;
    const auto found = FindStop(text, searched, stops);
    if (found.has_value()) return text.substr(0, found->begin) + "|" + stops[found->which];
  }
  return text;
}

TEST(FindStopTest, FindsAStringThatSpansTokens) {
  EXPECT_EQ(Cut({"a", "b", "c", "d", "e"}, {"bcd"}), "a|bcd");
  EXPECT_EQ(Cut({"ab", "c", "de"}, {"bcd"}), "a|bcd");
  EXPECT_EQ(Cut({"b", "cd"}, {"bcd"}), "|bcd") << "the text may begin with it";
}

TEST(FindStopTest, FindsAStringWithinAToken) {
  EXPECT_EQ(Cut({"x", "one. two. three"}, {". "}), "xone|. ");
  EXPECT_EQ(Cut({"x", "", "y"}, {"z"}), "xy");
}

TEST(FindStopTest, PrefersTheFirstToBeginThenTheShortest) {
  EXPECT_EQ(Cut({"xabcd"}, {"cd", "bcd", "abc"}), "x|abc");
  EXPECT_EQ(Cut({"xabcd"}, {"abcd", "ab", "abc"}), "x|ab");
  EXPECT_EQ(Cut({"x", "a", "b", "c"}, {"abc", "b"}), "xa|b") << "it ends as soon as it can";
}

TEST(FindStopTest, FindsRepeatedBeginnings) {
  EXPECT_EQ(Cut({"a", "a", "a", "b"}, {"aab"}), "a|aab");
  EXPECT_EQ(Cut({"aa", "aab"}, {"aaab"}), "a|aaab");
}

TEST(FindStopTest, FindsACharacterWhoseBytesAreSpread) {
  EXPECT_EQ(Cut({"a\xF0\x9F", "\x98", "\x80z"}, {"😀"}), "a|😀");
  EXPECT_EQ(Cut({"a\xF0\x9F", "\x98", "\x81z"}, {"😀"}), "a\xF0\x9F\x98\x81z");
}

TEST(FindStopTest, ReadsOnlyWhatANewTokenCanComplete) {
  EXPECT_FALSE(FindStop("stop and go", 4, Stops{"stop"}).has_value()) << "it was searched";
  EXPECT_EQ(FindStop("stop and go", 3, Stops{"stop"})->begin, 0u);
  EXPECT_EQ(FindStop("stop stop", 4, Stops{"stop"})->begin, 5u);
  EXPECT_FALSE(FindStop("", 0, Stops{"stop"}).has_value());
  EXPECT_FALSE(FindStop("stop", 0, Stops{}).has_value());
}

// Compares every way to cut a text into tokens with a search in the text that ends with each token.
TEST(FindStopTest, EqualsASearchInTheWholeText) {
  const std::string text = "abaababaab";
  const Stops stops = {"aabab", "baa", "bb"};
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    std::vector<std::string> tokens = {""};
    std::string grown, expected;
    for (size_t i = 0; i < text.size(); ++i) {
      tokens.back() += text[i];
      grown += text[i];
      const bool ends = i + 1 == text.size() || ((cuts >> i) & 1) != 0;
      if (!ends) continue;
      tokens.emplace_back();
      size_t first = grown.size(), which = stops.size();
      for (size_t s = 0; s < stops.size(); ++s) {
        const size_t begin = grown.find(stops[s]);
        if (begin < first) first = begin, which = s;
      }
      if (expected.empty() && which < stops.size()) {
        expected = grown.substr(0, first) + "|" + stops[which];
      }
    }
    EXPECT_EQ(Cut(tokens, stops), expected) << cuts;
  }
}

}  // namespace
}  // namespace ablate::engine
