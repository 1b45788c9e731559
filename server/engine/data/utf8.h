// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef ABLATE_SERVER_ENGINE_DATA_UTF8_H_
#define ABLATE_SERVER_ENGINE_DATA_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::engine {

// What DecodeUtf8 returns where no code point begins.
inline constexpr char32_t kNotUtf8 = 0xFFFFFFFF;

// The code point at byte `offset` (which must be inside `text`), moving `offset` behind it;
// kNotUtf8 leaves `offset` alone.
char32_t DecodeUtf8(absl::string_view text, size_t& offset);

// Whether it is one of the control characters, C0, DEL or C1.
inline bool IsControl(char32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
}

// Byte offset of the first ill-formed sequence, or string_view::npos.
size_t FindNotUtf8(absl::string_view text);

// The bytes of a code point that DecodeUtf8 can return.
std::string EncodeUtf8(char32_t code_point);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_UTF8_H_
