// Texts of tokens, and their labels at the axes of maps. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_TOKEN_LABELS_H_
#define ABLATE_SERVER_REPORT_FIGURE_TOKEN_LABELS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/figure/analyzed.h"

namespace ablate::figure {

// The arrays with the texts, for ArrayForm::optional.
inline constexpr absl::string_view kTokenArrays[] = {"token_text", "token_ends"};

// Returns the bytes of each token, from the seed's arrays; empty if it lacks them, or if they don't
// fit each other or the number of tokens. A boundary has no bytes.
std::vector<std::string> TokenTexts(const AnalyzedSeed& seed, size_t tokens);

// Returns the characters of a prompt that are its tokens, after the boundary if there is one token
// more; empty if their number differs.
std::vector<std::string> CharactersOf(absl::string_view prompt, size_t tokens);

// Returns a token's label: · for a space, ¶ for a line feed, \t for a tab, \x1b for another control
// character, | for a boundary, U+FFFD for a part of a character. Long ones are cut in the middle.
std::string TokenLabel(absl::string_view text);

// Explains the signs that occur in labels: "|: the boundary token, ·: a space".
std::string SignsText(const std::vector<std::string>& texts);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_TOKEN_LABELS_H_
