// Values as text for people: shortened, escaped, with numbers as short decimals; and guesses at
// misspelt names.
#ifndef ABLATE_PROTO_REFLECT_TEXT_H_
#define ABLATE_PROTO_REFLECT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::reflect {

// How deep lists and fields of a value may nest.
inline constexpr int kDeepest = 50;

// The candidate nearest to `word` by edit distance, whatever its case, or empty if none is near
// enough to suggest.
std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates);

// "; did you mean X?" with the nearest candidate, empty if there is none; or between other words.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates,
                       absl::string_view before = "; ", absl::string_view after = "");

// A value as people would write it ([a, b] for lists, {k: v} for messages, keys in order),
// shortened to `limit` bytes (at least 3) at a character's border; control characters and bytes
// that are not UTF-8 are shown as \xNN, so that the result is always printable UTF-8.
std::string ShortText(const google::protobuf::Value& value, size_t limit = 200);

// The same for a string.
std::string ShortText(absl::string_view text, size_t limit = 200);

// ShortText, with a string in quotes: "3" is not 3.
std::string Quoted(const google::protobuf::Value& value);
std::string Quoted(absl::string_view text);

// `key` as a part of a path: ["key"], shortened and escaped.
std::string Subscript(absl::string_view key);

// The shortest decimal that reads back as the same double: 0.001, 5e-05, 1000000, 1e+16. Fixed
// notation from 1e-4 to below 1e16, whole numbers without a point, -0 as 0; nan, inf, -inf.
std::string ShortestDecimal(double value);

// 1,234,567.
std::string WithCommas(uint64_t number);

// Bytes of the UTF-8 character that `text` begins with, 0 if it begins with none (overlong forms
// and surrogates are none).
size_t CharacterLength(absl::string_view text);

bool IsUtf8(absl::string_view text);

// Whether some character is a control character (below U+0020, U+007F to U+009F) other than those
// in `except`.
bool HasControlCharacter(absl::string_view text, absl::string_view except = "");

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_TEXT_H_
