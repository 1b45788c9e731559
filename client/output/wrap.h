// Breaks text into lines that fit a terminal or a page.
#ifndef ABLATE_CLIENT_OUTPUT_WRAP_H_
#define ABLATE_CLIENT_OUTPUT_WRAP_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::client {

// Breaks each line of `text` that is wider than `width` columns at spaces outside of `backticks`.
// Continuation lines are indented like their line, or, in a list of terms and texts with at least
// two spaces between, like the text. A word or command that is too wide stays whole, and so does a
// line that begins with "  ablate ".
std::string Wrap(absl::string_view text, int width);

// Does the same for the lines that aren't rows of a table, which have two spaces between columns.
std::string WrapProse(absl::string_view text, int width);

// Returns terms and their texts in two columns, each row ending in a line break. The text of a term
// that is wider than 26 columns begins on the next line. The column of terms has at least `least`
// columns.
std::string TermList(const std::vector<std::pair<std::string, std::string>>& rows, int width,
                     int least = 0);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_WRAP_H_
