// Makes text harmless for a terminal, and fits it into columns.
#ifndef ABLATE_CLIENT_OUTPUT_TERMINAL_TEXT_H_
#define ABLATE_CLIENT_OUTPUT_TERMINAL_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::client {

// Returns `text` on one line, without anything that moves a cursor or turns the direction of
// writing: white space becomes a space; other controls, bidirectional marks and invalid bytes are
// shown as \x1b or \u202e.
std::string Printable(absl::string_view text);

// Returns the number of columns of `text` on a terminal: 2 for East Asian wide characters and
// emoji, 0 for combining ones.
int DisplayWidth(absl::string_view text);

// Returns `text`, or as much of it as fits into `width` columns with an ellipsis.
std::string Truncate(absl::string_view text, int width);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_TERMINAL_TEXT_H_
