// Texts from elsewhere, made fit for figures and pages.
#ifndef ABLATE_TEXT_CLEAN_H_
#define ABLATE_TEXT_CLEAN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::text {

// Takes the first character off `text`, which is not empty; U+FFFD for a byte that begins none
// (overlong forms, surrogates and truncated sequences are none).
char32_t TakeCharacter(absl::string_view* text);

// How many characters TakeCharacter takes off `text`: as many as CleanText gives.
size_t CountCharacters(absl::string_view text);

// `text` with U+FFFD for each control character (line breaks and tabs too), each mark that turns
// the direction of writing, each code point that XML can't hold and each byte that is not UTF-8.
// Nothing else changes; what is clean stays as it is.
std::string CleanText(absl::string_view text);

// `text`, which is clean, with &, <, >, " and ' as references: for XML and HTML, in texts and
// attributes.
std::string EscapeMarkup(absl::string_view text);

}  // namespace ablate::text

#endif  // ABLATE_TEXT_CLEAN_H_
