#include "base/tokenizer/word_pattern.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/tokenizer/vocabulary.h"

namespace ablate::tokenizer {
namespace {

// An alternative, or several, and what they mean.
struct Part {
  absl::string_view regex;
  void (*set)(WordPattern* pattern);
};

void KeepDefault(WordPattern*) {}

// Returns the parts that are known at each place of a pattern.
std::vector<std::vector<Part>> KnownParts() {
  const auto any_case = [](WordPattern* pattern) { pattern->any_case = true; };
  return {
      {{"'s|'t|'re|'ve|'m|'ll|'d|", KeepDefault},
       {"'(?:[sdmt]|ll|ve|re)|", KeepDefault},
       {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|", any_case},
       {"'(?i:[sdmt]|ll|ve|re)|", any_case}},
      {{R"( ?\p{L}+|)", KeepDefault},
       {R"([^\r\n\p{L}\p{N}]?\p{L}+|)", [](WordPattern* p) { p->any_before_letters = true; }}},
      {{R"( ?\p{N}+|)", KeepDefault},
       {R"(\p{N}+|)", [](WordPattern* p) { p->space_before_numbers = false; }},
       {R"(\p{N}|)",
        [](WordPattern* p) {
          p->space_before_numbers = false;
          p->max_numbers = 1;
        }},
       {R"(\p{N}{1,3}|)",
        [](WordPattern* p) {
          p->space_before_numbers = false;
          p->max_numbers = 3;
        }}},
      {{R"( ?[^\s\p{L}\p{N}]+|)", KeepDefault},
       {R"( ?[^\s\p{L}\p{N}]+[\r\n]*|)", [](WordPattern* p) { p->line_ends_after_others = true; }}},
      {{R"(\s+(?!\S)|\s+)", KeepDefault},
       {R"(\s*[\r\n]+|\s+(?!\S)|\s+)", [](WordPattern* p) { p->line_ends_end_spaces = true; }}},
  };
}

}  // namespace

absl::StatusOr<WordPattern> ParseWordPattern(absl::string_view regex) {
  WordPattern pattern;
  absl::string_view rest = regex;
  for (const std::vector<Part>& parts : KnownParts()) {
    const Part* found = nullptr;
    std::string expected;
    for (const Part& part : parts) {
      if (found == nullptr && absl::ConsumePrefix(&rest, part.regex)) found = &part;
      absl::StrAppend(&expected, expected.empty() ? "" : " or ", part.regex);
    }
    if (found == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the pattern isn't supported at ", Quoted(rest), "; expected ", expected, " there"));
    }
    found->set(&pattern);
  }
  if (rest.empty()) return pattern;
  return absl::InvalidArgumentError(
      absl::StrCat("the pattern isn't supported at ", Quoted(rest), "; expected its end there"));
}

}  // namespace ablate::tokenizer
