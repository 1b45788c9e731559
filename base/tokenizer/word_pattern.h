// Describes the patterns that divide text into words: those of GPT-2 and GPT-NeoX, Llama 3, Qwen2.
#ifndef ABLATE_BASE_TOKENIZER_WORD_PATTERN_H_
#define ABLATE_BASE_TOKENIZER_WORD_PATTERN_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::tokenizer {

// A pattern is a list of alternatives, of which the first that matches counts. The default is
// GPT-2's:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct WordPattern {
  bool any_case = false;                // (?i:'s|'t|'re|'ve|'m|'ll|'d)
  bool any_before_letters = false;      // [^\r\n\p{L}\p{N}]?\p{L}+
  bool space_before_numbers = true;     // false: \p{N}
  size_t max_numbers = 0;               // 3: \p{N}{1,3}; 0: no limit
  bool line_ends_after_others = false;  // [^\s\p{L}\p{N}]+[\r\n]*
  bool line_ends_end_spaces = false;    // \s*[\r\n]+ before \s+(?!\S)
};

// Reads a regular expression that has one of the known alternatives at each place.
// INVALID_ARGUMENT names the first part that isn't known, and those that are known there.
absl::StatusOr<WordPattern> ParseWordPattern(absl::string_view regex);

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_WORD_PATTERN_H_
