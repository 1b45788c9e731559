// Compares the words and the classes of characters with PCRE2, which matches the patterns.
#include "base/tokenizer/word_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "tests/tokenizer/mixed_text.h"

namespace ablate::tokenizer {
namespace {

using ::testing::ElementsAre;

constexpr char kGpt2[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kLlama3[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// Returns a pattern for each combination of known parts.
std::vector<std::string> EveryPattern() {
  const std::vector<std::vector<const char*>> places = {
      {"'s|'t|'re|'ve|'m|'ll|'d|", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"},
      {R"( ?\p{L}+|)", R"([^\r\n\p{L}\p{N}]?\p{L}+|)"},
      {R"( ?\p{N}+|)", R"(\p{N}+|)", R"(\p{N}|)", R"(\p{N}{1,3}|)"},
      {R"( ?[^\s\p{L}\p{N}]+|)", R"( ?[^\s\p{L}\p{N}]+[\r\n]*|)"},
      {R"(\s+(?!\S)|\s+)", R"(\s*[\r\n]+|\s+(?!\S)|\s+)"}};
  std::vector<std::string> patterns = {""};
  for (const auto& parts : places) {
    std::vector<std::string> longer;
    for (const std::string& pattern : patterns) {
      for (const char* part : parts) longer.push_back(pattern + part);
    }
    patterns = longer;
  }
  return patterns;
}
constexpr double kUnicodeVersion = 16.0;  // of CharacterClasses

class Pattern {
 public:
  explicit Pattern(const char* text) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    EXPECT_NE(code_, nullptr) << text;
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Pattern() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // Returns begin and end of the first match at `from` or later; an empty one if there is none.
  std::pair<size_t, size_t> Find(absl::string_view text, size_t from) const {
    const int count = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                  from, PCRE2_NO_UTF_CHECK, match_, nullptr);
    const PCRE2_SIZE* places = pcre2_get_ovector_pointer(match_);
    return count < 1 ? std::pair<size_t, size_t>() : std::pair(places[0], places[1]);
  }
  bool Matches(absl::string_view text) const { return Find(text, 0).second > 0; }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

// PCRE2's classes, in its version of Unicode.
struct PatternClasses {
  Pattern letter{R"(\p{L})"}, number{R"(\p{N})"}, space{R"(\s)"}, unassigned{R"(\p{Cn})"};

  CharacterClass Of(absl::string_view character) const {
    if (letter.Matches(character)) return CharacterClass::kLetter;
    if (number.Matches(character)) return CharacterClass::kNumber;
    return space.Matches(character) ? CharacterClass::kSpace : CharacterClass::kOther;
  }
};

double PatternUnicodeVersion() {
  char version[64] = {};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
  return std::atof(version);
}

std::vector<std::string> Words(absl::string_view text, const char* regex = kGpt2) {
  const WordSplitter splitter(*ParseWordPattern(regex));
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t resume = 0;
    const size_t end = splitter.EndOfWord(text, at, true, &resume);
    EXPECT_GT(end, at);
    EXPECT_LE(end, text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// Returns PCRE2's words of `text`, with U+FFFD for each byte that is part of no character.
std::vector<std::string> PatternWords(absl::string_view text, const char* regex) {
  std::string clean;
  std::vector<size_t> places;  // in `text` of each byte of `clean`, and their ends
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const bool is_character = text::DecodeUtf8(text, end) != text::kNotUtf8;
    const std::string character = is_character ? std::string(text.substr(at, end - at)) : "\uFFFD";
    clean += character;
    places.resize(clean.size(), at);
    at = is_character ? end : at + 1;
  }
  places.push_back(text.size());
  const Pattern pattern(regex);
  std::vector<std::string> words;
  for (size_t at = 0; at < clean.size();) {
    const auto [begin, end] = pattern.Find(clean, at);
    EXPECT_EQ(begin, at);
    EXPECT_GT(end, begin);
    if (end <= begin) break;
    words.emplace_back(text.substr(places[begin], places[end] - places[begin]));
    at = end;
  }
  return words;
}

// Returns `text` without characters of which PCRE2 has another class.
std::string WithoutDisputed(absl::string_view text) {
  const CharacterClasses classes;
  const PatternClasses pattern_classes;
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const char32_t code_point = text::DecodeUtf8(text, end);
    if (code_point == text::kNotUtf8) end = at + 1;
    const absl::string_view character = text.substr(at, end - at);
    if (code_point == text::kNotUtf8 || code_point < 0x80 ||
        pattern_classes.Of(character) == classes.Of(code_point)) {
      absl::StrAppend(&kept, character);
    }
    at = end;
  }
  return kept;
}

TEST(CharacterClassesTest, EqualsPcre2ExceptForItsVersionOfUnicode) {
  const CharacterClasses classes;
  const PatternClasses pattern_classes;
  const double version = PatternUnicodeVersion();
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    const std::string character = text::EncodeUtf8(code_point);
    const CharacterClass ours = classes.Of(code_point), theirs = pattern_classes.Of(character);
    if (ours == theirs) continue;
    // Perl counts U+180E as white space; Unicode stopped doing so in version 6.3.
    if (code_point == 0x180E && theirs == CharacterClass::kSpace) continue;
    const bool is_newer =
        version < kUnicodeVersion && pattern_classes.unassigned.Matches(character);
    const bool is_older = version > kUnicodeVersion && ours == CharacterClass::kOther;
    EXPECT_TRUE(is_newer || is_older) << std::hex << static_cast<uint32_t>(code_point);
  }
}

TEST(WordSplitterTest, FollowsThePattern) {
  EXPECT_THAT(Words("Hello  world!\n"), ElementsAre("Hello", " ", " world", "!", "\n"));
  EXPECT_THAT(Words("it's we'll I'D x'rex"),
              ElementsAre("it", "'s", " we", "'ll", " I", "'", "D", " x", "'re", "x"));
  EXPECT_THAT(Words("a1 2b '' 's"), ElementsAre("a", "1", " 2", "b", " ''", " '", "s"));
  EXPECT_THAT(Words(" \n\n  a\t\tb"), ElementsAre(" \n\n ", " a", "\t", "\t", "b"));
  EXPECT_THAT(Words("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(Words("'"), ElementsAre("'"));
  EXPECT_THAT(Words("'l"), ElementsAre("'", "l"));
  EXPECT_THAT(Words(" "), ElementsAre(" "));
  EXPECT_THAT(Words("a\u180Eb\u00A0\u00A0c"),
              ElementsAre("a", "\u180E", "b", "\u00A0", "\u00A0", "c"));
}

TEST(WordSplitterTest, TakesBytesThatArentCharactersForOthers) {
  EXPECT_THAT(Words("a\xFF\xC3!b"), ElementsAre("a", "\xFF\xC3!", "b"));
  EXPECT_THAT(Words("é\xC3"), ElementsAre("é", "\xC3"));
  EXPECT_THAT(Words(" \xED\xA0\x80 x"), ElementsAre(" \xED\xA0\x80", " x"));
}

TEST(WordSplitterTest, FollowsThePatternsOfLlama3AndQwen2) {
  EXPECT_THAT(Words("Hello  world!\n\r\n x", kLlama3),
              ElementsAre("Hello", " ", " world", "!\n\r\n", " x"));
  EXPECT_THAT(Words("it'S we'Ll 'hello x'\u017Fa", kLlama3),
              ElementsAre("it", "'S", " we", "'Ll", " '", "hello", " x", "'\u017F", "a"));
  EXPECT_THAT(Words("a12345 678\u00BD", kLlama3),
              ElementsAre("a", "123", "45", " ", "678", "\u00BD"));
  EXPECT_THAT(Words("a12 3", kQwen2), ElementsAre("a", "1", "2", " ", "3"));
  EXPECT_THAT(Words("!a !!b\tc\u3000d \ne", kQwen2),
              ElementsAre("!a", " !!", "b", "\tc", "\u3000d", " \n", "e"));
  EXPECT_THAT(Words("a \n \n  b \n  ", kQwen2), ElementsAre("a", " \n \n", " ", " b", " \n", "  "));
  EXPECT_THAT(Words("\xFF\x61 \xC3", kQwen2), ElementsAre("\xFF\x61", " \xC3"));
}

TEST(WordSplitterTest, FindsTheWordsOfPcre2) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::string text = WithoutDisputed(MixedText(seed, 100'000));
    const std::string damaged = WithoutDisputed(DamagedText(seed, 100'000));
    EXPECT_FALSE(text::IsUtf8(damaged));
    for (const char* regex : {kGpt2, kLlama3, kQwen2}) {
      EXPECT_TRUE(Words(text, regex) == PatternWords(text, regex)) << seed << " " << regex;
      EXPECT_TRUE(Words(damaged, regex) == PatternWords(damaged, regex)) << seed << " " << regex;
    }
  }
}

TEST(WordSplitterTest, FindsTheWordsOfEachPattern) {
  const std::string text = WithoutDisputed(MixedText(4, 20'000));
  for (const std::string& regex : EveryPattern()) {
    EXPECT_TRUE(Words(text, regex.c_str()) == PatternWords(text, regex.c_str())) << regex;
  }
}

TEST(WordSplitterTest, FindsTheSameWordsAsTextArrives) {
  const std::string text = MixedText(5, 10'000);
  for (const std::string& regex : EveryPattern()) {
    const WordSplitter splitter(*ParseWordPattern(regex));
    std::vector<std::string> words;
    size_t begin = 0, resume = 0;
    for (size_t read = 1; read <= text.size(); ++read) {
      const absl::string_view known = absl::string_view(text).substr(0, read);
      while (begin < read) {
        const size_t end = splitter.EndOfWord(known, begin, read == text.size(), &resume);
        if (end == WordSplitter::kNeedsMore) break;
        words.emplace_back(known.substr(begin, end - begin));
        begin = end;
        resume = 0;
      }
    }
    EXPECT_TRUE(words == Words(text, regex.c_str())) << regex;
  }
}

TEST(WordSplitterTest, CutsVeryLongWordsBetweenCharacters) {
  constexpr size_t kMax = WordSplitter::kMaxWordBytes;
  const auto lengths = [](const std::string& text) {
    std::vector<size_t> found;
    for (const std::string& word : Words(text)) found.push_back(word.size());
    return found;
  };
  EXPECT_THAT(lengths(std::string(kMax, 'a') + "!"), ElementsAre(kMax, 1));
  EXPECT_THAT(lengths(std::string(kMax + 1, 'a')), ElementsAre(kMax, 1));
  EXPECT_THAT(lengths(" " + std::string(2 * kMax, '!')), ElementsAre(kMax, kMax, 1));
  EXPECT_THAT(lengths(std::string(kMax + 3, ' ') + "a"), ElementsAre(kMax, 2, 2));
  std::string characters;
  while (characters.size() <= kMax) characters += "中";
  EXPECT_THAT(lengths(characters), ElementsAre(kMax / 3 * 3, characters.size() - kMax / 3 * 3));
  EXPECT_EQ(Words("!" + std::string(kMax + 5, '\n'), kQwen2)[0].size(), kMax);
}

}  // namespace
}  // namespace ablate::tokenizer
