// Checks of short texts in requests.
#ifndef ABLATE_SERVER_SERVICE_TEXT_H_
#define ABLATE_SERVER_SERVICE_TEXT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace ablate::service {

// Well-formed UTF-8 without control characters, of 1 to `most_characters` characters.
bool IsPrintable(absl::string_view text, size_t most_characters);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_TEXT_H_
