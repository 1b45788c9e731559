// Cleans and escapes foreign text for figures and pages.
#ifndef ABLATE_BASE_CLEAN_H_
#define ABLATE_BASE_CLEAN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::text {

// Removes the first character of `text`, which isn't empty, and returns it. Returns U+FFFD for a
// byte that begins no character, as in overlong forms, surrogates and truncated sequences.
char32_t TakeCharacter(absl::string_view* text);

// Returns the number of characters that TakeCharacter finds in `text`, which is the length of
// CleanText's result.
size_t CountCharacters(absl::string_view text);

// Returns `text` with U+FFFD in place of each control character (line breaks and tabs too), each
// bidirectional control, each code point that XML can't hold and each byte that isn't UTF-8. Leaves
// everything else as it is.
std::string CleanText(absl::string_view text);

// Escapes &, <, >, " and ' for XML and HTML text and attributes. `text` must be clean already.
std::string EscapeMarkup(absl::string_view text);

}  // namespace ablate::text

#endif  // ABLATE_BASE_CLEAN_H_
