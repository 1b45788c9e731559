// Formats values as text for people: shortened, escaped, with numbers as short decimals; and
// suggests names for misspelt ones.
#ifndef ABLATE_PROTO_REFLECT_TEXT_H_
#define ABLATE_PROTO_REFLECT_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::reflect {

// Largest nesting depth of lists and fields in a value.
inline constexpr int kMaxDepth = 50;

// Returns the candidate nearest to `word` by edit distance, ignoring case; empty if none is near
// enough to suggest.
std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates);

// Returns "; did you mean X?" with the nearest candidate, or with other words around it; empty if
// there is none.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates,
                       absl::string_view before = "; ", absl::string_view after = "");

// Returns a value as people would write it ([a, b] for lists, {k: v} for messages, keys in order),
// shortened to `limit` bytes (at least 3) at a character boundary. Control characters and bytes
// that aren't UTF-8 become \xNN, so that the result is always printable UTF-8.
std::string ShortText(const google::protobuf::Value& value, size_t limit = 200);

// The same for a string.
std::string ShortText(absl::string_view text, size_t limit = 200);

// Returns ShortText, with a string in quotes, because "3" is not 3.
std::string Quoted(const google::protobuf::Value& value);
std::string Quoted(absl::string_view text);

// Returns the values as a choice, such as "raw, unit or layer".
std::string AnyOf(const std::vector<std::string>& values);

// Returns `key` as a part of a path: ["key"], shortened and escaped.
std::string Subscript(absl::string_view key);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_TEXT_H_
