// Reads text one character at a time, makes it harmless for a terminal, and fits it into columns.
#ifndef ABLATE_CLIENT_OUTPUT_TERMINAL_TEXT_H_
#define ABLATE_CLIENT_OUTPUT_TERMINAL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::client {

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;    // 1 for an invalid byte
  bool valid = false;  // not overlong, no surrogate, at most U+10FFFF
};

// Returns the first character of `text`, which must not be empty.
Character FirstCharacter(absl::string_view text);

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
