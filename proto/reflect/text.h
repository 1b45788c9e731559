// Values as text for people: shortened, escaped, with numbers as short decimals; and guesses at
// misspelt names.
#ifndef ABLATE_PROTO_REFLECT_TEXT_H_
#define ABLATE_PROTO_REFLECT_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::reflect {

// How deep lists and fields of a value may nest.
inline constexpr int kMaxDepth = 50;

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

// The values as a choice, such as "raw, unit or layer".
std::string AnyOf(const std::vector<std::string>& values);

// `key` as a part of a path: ["key"], shortened and escaped.
std::string Subscript(absl::string_view key);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_TEXT_H_
