#include "base/clean.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"

namespace ablate::text {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Range {
  char32_t first, last;
};

// Control characters, bidirectional controls (with line and paragraph separators), and code points
// that XML and HTML exclude.
constexpr Range kUnfit[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C}, {0x200E, 0x200F},
                            {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFDD0, 0xFDEF}, {0xFEFF, 0xFEFF}};

// The last two code points of each plane aren't characters, nor are U+FDD0 to U+FDEF.
bool IsNoCharacter(char32_t code) { return (code & 0xFFFE) == 0xFFFE; }

bool IsUnfit(char32_t code) {
  return IsNoCharacter(code) ||
         std::any_of(std::begin(kUnfit), std::end(kUnfit), [code](const Range& range) {
           return code >= range.first && code <= range.last;
         });
}

}  // namespace

char32_t TakeCharacter(absl::string_view* text) {
  size_t bytes = 0;
  const char32_t code = DecodeUtf8(*text, bytes);
  const bool valid = code != kNotUtf8;
  text->remove_prefix(valid ? bytes : 1);
  return valid ? code : kReplacement;
}

size_t CountCharacters(absl::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) TakeCharacter(&text);
  return count;
}

std::string CleanText(absl::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const absl::string_view rest = text;
    const char32_t code = TakeCharacter(&text);
    if (code == kReplacement || IsUnfit(code)) {
      clean.append("\uFFFD");
    } else {
      absl::StrAppend(&clean, rest.substr(0, rest.size() - text.size()));
    }
  }
  return clean;
}

std::string EscapeMarkup(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

}  // namespace ablate::text
