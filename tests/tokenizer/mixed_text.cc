#include "tests/tokenizer/mixed_text.h"

#include <iterator>
#include <random>
#include <utility>

#include "base/utf8.h"

namespace ablate::tokenizer {
namespace {

constexpr char32_t kSurrogates = 0xD800, kAfterSurrogates = 0xE000, kCodePoints = 0x110000;

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  size_t Below(size_t bound) { return random_() % bound; }
  std::string Take() { return std::move(text_); }
  size_t size() const { return text_.size(); }

  void WriteSomething() {
    switch (Below(32)) {
      case 0:
        return Repeat(1 + Below(3), [this] { Character(AnyCodePoint()); });
      case 1:
        return Repeat(1 + Below(30), [this] { Character(0x4E00 + Below(0x5200)); });
      case 2:
        return Repeat(1 + Below(12), [this] { Character(0x3041 + Below(0xB0)); });
      case 3:
        return Repeat(1 + Below(8), [this] { Character(0xAC00 + Below(11172)); });
      case 4:
        return Emoji();
      case 5:
        return Repeat(1 + Below(4), [this] {
          Letter();
          Repeat(1 + Below(3), [this] { Character(0x300 + Below(0x70)); });
        });
      case 6:
        return Repeat(1 + Below(4), [this] { Character(Below(33)); });
      case 7:
      case 8:
        return Repeat(1 + Below(5), [this] { Pick(kSpaces); });
      case 9:
        return Repeat(1 + Below(20), [this] { text_ += ' '; });
      case 10:
      case 11:
        return Repeat(1 + Below(6), [this] { Pick(kNumbers); });
      case 12:
        return Repeat(1 + Below(4), [this] { Pick(kContractions); });
      case 13:
        if (Below(100) == 0) Repeat(Below(5000), [this] { Letter(); });
        text_.append(Below(100), "=-~a0"[Below(5)]);
        return;
      case 14:
      case 15:
      case 16:
        return Code();
      case 17:
        return Repeat(2 + Below(8), [this] { Character(0x400 + Below(0x200)); });
      default:
        return Word();
    }
  }

  void Character(char32_t code_point) {
    const bool is_surrogate = code_point >= kSurrogates && code_point < kAfterSurrogates;
    if (!is_surrogate) text_ += text::EncodeUtf8(code_point);
  }

 private:
  static constexpr const char* kSpaces[] = {
      "\t",     "\n",     "\v",     "\f",     "\r",     " ",      "  ",     "\u0085",
      "\u00A0", "\u1680", "\u2000", "\u2005", "\u200A", "\u2028", "\u2029", "\u202F",
      "\u205F", "\u3000", "\u180E", "\u200B", "\uFEFF", "\r\n",   "\n\n",   "\x1C",
  };
  static constexpr const char* kNumbers[] = {"0", "7", "42", "1999", "²", "½", "Ⅷ", "٣", "१", "𝟘"};
  static constexpr const char* kContractions[] = {
      "'s", "'t", "'re", "'ve", "'m",   "'ll",  "'d",  "'",   "'S",  "'r", "'v", "'l",
      "'L", "’s", " 's", "''t", "'rex", "'lll", "'RE", "'Ve", "'lL", "'ſ", "'ſt"};
  static constexpr const char* kEmoji[] = {
      "😀", "👍🏽", "👩‍👩‍👧", "🇩🇪", "❤️", "☃", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"};
  static constexpr const char* kOperators[] = {"=",  "==", "->", "::", "();", "{",  "}", "//",
                                               "/*", "*/", "+=", "&&", "\"",  "<<", ",", "\\n"};
  static constexpr const char* kWords[] = {
      "the",   "of",   "and",  "model", "gradient", "Norm",         "train",
      "naïve", "über", "loss", "IS",    "x",        "tokenization", "antidisestablishmentarianism"};

  template <typename Write>
  void Repeat(size_t times, Write write) {
    for (size_t i = 0; i < times; ++i) write();
  }
  template <size_t N>
  void Pick(const char* const (&choices)[N]) {
    text_ += choices[Below(N)];
  }
  void Letter() { text_ += static_cast<char>((Below(4) == 0 ? 'A' : 'a') + Below(26)); }
  char32_t AnyCodePoint() { return static_cast<char32_t>(Below(kCodePoints)); }

  void Word() {
    text_ += ' ';
    if (Below(2) == 0) return Pick(kWords);
    Repeat(1 + Below(9), [this] { Letter(); });
    if (Below(8) == 0) text_ += ".,;:!?"[Below(6)];
  }
  void Emoji() {
    Repeat(1 + Below(4), [this] {
      if (Below(2) == 0) return Pick(kEmoji);
      Character(0x1F300 + Below(0x400));
    });
  }
  void Code() {
    text_ += '\n';
    Repeat(Below(8), [this] { text_ += Below(8) == 0 ? "\t" : "  "; });
    Repeat(1 + Below(6), [this] {
      Repeat(1 + Below(6), [this] { Letter(); });
      if (Below(3) == 0) text_ += '_';
      Pick(kOperators);
      if (Below(3) == 0) Pick(kNumbers);
      if (Below(2) == 0) text_ += ' ';
    });
  }

  std::mt19937_64 random_;
  std::string text_;
};

}  // namespace

std::string MixedText(uint64_t seed, size_t bytes) {
  Writer writer(seed);
  while (writer.size() < bytes) writer.WriteSomething();
  return writer.Take();
}

std::string DamagedText(uint64_t seed, size_t bytes) {
  std::mt19937_64 random(seed);
  const std::string text = MixedText(seed, bytes);
  std::string damaged;
  for (const char byte : text) {
    const uint64_t choice = random() % 64;
    if (choice == 0) continue;
    damaged += choice == 1 ? static_cast<char>(random()) : byte;
    if (choice == 2) damaged += static_cast<char>(0x80 + random() % 0x80);
  }
  return damaged;
}

std::string CombiningText(uint64_t seed, size_t bytes) {
  // Letters, marks, Indic vowels, Tibetan, Hangul, compatibility ideographs, music.
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {'A', 'z'},       {0xC0, 0x24F},      {0x300, 0x345},     {0x370, 0x3FF},
      {0x591, 0x5EA},   {0x622, 0x655},     {0x9BE, 0x9DF},     {0xB3C, 0xB5D},
      {0xF40, 0xFB9},   {0x1100, 0x1112},   {0x1161, 0x1175},   {0x11A7, 0x11C2},
      {0x1E00, 0x1FFE}, {0x3041, 0x309A},   {0xAC00, 0xAC40},   {0xF900, 0xF930},
      {0xFB1D, 0xFB4E}, {0x11099, 0x110BA}, {0x1D157, 0x1D172}, {0x2F800, 0x2F830},
  };
  std::mt19937_64 random(seed);
  Writer writer(seed);
  while (writer.size() < bytes) {
    const auto& [first, last] = kRanges[random() % std::size(kRanges)];
    for (size_t count = 1 + random() % 3; count > 0; --count) {
      writer.Character(first + static_cast<char32_t>(random() % (last - first + 1)));
      if (random() % 2 == 0) writer.Character(0x300 + static_cast<char32_t>(random() % 0x70));
    }
    if (random() % 8 == 0) writer.Character(' ');
  }
  return writer.Take();
}

std::string EveryCodePoint() {
  std::string text;
  for (char32_t code_point = 0; code_point < kCodePoints; ++code_point) {
    if (code_point >= kSurrogates && code_point < kAfterSurrogates) continue;
    const std::string character = text::EncodeUtf8(code_point);
    text += "a" + character + "!" + character + "1\n";
  }
  return text;
}

}  // namespace ablate::tokenizer
