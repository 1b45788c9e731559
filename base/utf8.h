// Decodes UTF-8 strictly: no overlong forms, no surrogates, nothing above U+10FFFF. All programs
// use this one decoder.
#ifndef ABLATE_BASE_UTF8_H_
#define ABLATE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::text {

// DecodeUtf8's result if no code point begins at the offset.
inline constexpr char32_t kNotUtf8 = 0xFFFFFFFF;

// Returns the code point at byte `offset`, which must be inside `text`, and moves `offset` past it.
// Returns kNotUtf8 and leaves `offset` if none begins there.
char32_t DecodeUtf8(absl::string_view text, size_t& offset);

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;    // 1 for an invalid byte
  bool valid = false;  // not overlong, no surrogate, at most U+10FFFF
};

// Returns the first character of `text`, which must not be empty.
Character FirstCharacter(absl::string_view text);

// Returns the bytes of a code point that DecodeUtf8 can return.
std::string EncodeUtf8(char32_t code_point);

// Returns the size in bytes of the first character of `text`; 0 if `text` is empty or begins with
// no character.
size_t CharacterLength(absl::string_view text);

// Returns the byte offset of the first ill-formed sequence, or string_view::npos.
size_t FindNotUtf8(absl::string_view text);

inline bool IsUtf8(absl::string_view text) { return FindNotUtf8(text) == absl::string_view::npos; }

// Returns the name by which iconv knows the encoding of a text in UTF-16 or UTF-32, given its
// beginning: by its byte order mark, or because every second byte is 0 in ASCII's characters. ""
// for any other text.
absl::string_view WideEncoding(absl::string_view beginning);

// Returns true for a control character: C0, DEL or C1.
constexpr bool IsControl(char32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
}

// Returns true if `text` has a control character other than those in `except`. Bytes that aren't
// UTF-8 don't count.
bool HasControlCharacter(absl::string_view text, absl::string_view except = "");

// Returns true for well-formed UTF-8 of 1 to `max_characters` characters without control
// characters.
bool IsPrintable(absl::string_view text, size_t max_characters);

}  // namespace ablate::text

#endif  // ABLATE_BASE_UTF8_H_
