// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF. The one decoder of all
// programs.
#ifndef ABLATE_TEXT_UTF8_H_
#define ABLATE_TEXT_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::text {

// What DecodeUtf8 returns where no code point begins.
inline constexpr char32_t kNotUtf8 = 0xFFFFFFFF;

// The code point at byte `offset` (which must be inside `text`), moving `offset` behind it;
// kNotUtf8 leaves `offset` alone.
char32_t DecodeUtf8(absl::string_view text, size_t& offset);

// The bytes of a code point that DecodeUtf8 can return.
std::string EncodeUtf8(char32_t code_point);

// Bytes of the character that `text` begins with; 0 if it begins with none, or is empty.
size_t CharacterLength(absl::string_view text);

// Byte offset of the first ill-formed sequence, or string_view::npos.
size_t FindNotUtf8(absl::string_view text);

inline bool IsUtf8(absl::string_view text) { return FindNotUtf8(text) == absl::string_view::npos; }

// Whether it is one of the control characters, C0, DEL or C1.
constexpr bool IsControl(char32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
}

// Whether some character of `text` is a control character other than those in `except`. Bytes that
// are not UTF-8 are none.
bool HasControlCharacter(absl::string_view text, absl::string_view except = "");

// Well-formed UTF-8 without control characters, of 1 to `max_characters` characters.
bool IsPrintable(absl::string_view text, size_t max_characters);

}  // namespace ablate::text

#endif  // ABLATE_TEXT_UTF8_H_
