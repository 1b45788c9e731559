// Text that strangers send: whether it may be shown, and how it is shown in messages.
#ifndef ABLATE_SERVER_SERVICE_TEXT_H_
#define ABLATE_SERVER_SERVICE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::service {

// Length in bytes of the well-formed UTF-8 character at the start of `text`; 0 if there is none.
size_t CharacterBytes(absl::string_view text);

// In double quotes, with control characters, quotes and bytes that are not UTF-8 as \xNN, shortened
// to about `limit` bytes.
std::string Quoted(absl::string_view value, size_t limit = 200);

// The beginning of well-formed UTF-8, at most `limit` bytes, cut between characters.
std::string Beginning(absl::string_view text, size_t limit);

// Well-formed UTF-8 without control characters, of 1 to `most_characters` characters.
bool IsPrintable(absl::string_view text, size_t most_characters);

// 64 lower-case hex digits.
bool IsSha256(absl::string_view text);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_TEXT_H_
