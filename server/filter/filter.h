// Parses filters of lists, such as `model.norm.placement = pre AND (eval/loss < 2.4 OR seed = 1)`,
// into trees. The grammar is a subset of Google's AIP-160 (docs/reference/filters.md):
//
//   filter     = [ expression ]
//   expression = term { "AND" term } | term { "OR" term }
//   term       = "NOT" term | "(" expression ")" | name operator value
//   name       = word | string | word "(" ( word | string ) ")"
//   operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | ":"
//   value      = word | string
//
// AND and OR don't mix without parentheses: AIP-160 lets OR bind tighter, most languages AND.
// Keywords may be in lower case. What names mean is decided elsewhere.
#ifndef ABLATE_SERVER_FILTER_FILTER_H_
#define ABLATE_SERVER_FILTER_FILTER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::filter {

inline constexpr size_t kMaxBytes = 4096;
inline constexpr size_t kMaxComparisons = 64;
inline constexpr int kMaxNesting = 32;  // of parentheses and NOT

// An error in a text, for people. Columns are counted in characters, from 1.
struct Mistake {
  size_t column = 0;
  std::string complaint;  // "'&&' isn't an operator"
  std::string expected;   // "AND, OR or the end"
};

struct Name {
  std::string function;  // min of min(eval/loss); often empty
  std::string text;
  size_t column = 0;
};

enum class Operator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kHas };

struct Comparison {
  Name name;
  Operator op = Operator::kEqual;
  size_t op_column = 0;
  std::string value;
  bool quoted = false;  // the value was a string
  size_t value_column = 0;
};

struct Expression {
  enum class Kind { kAnd, kOr, kNot, kComparison };
  Kind kind = Kind::kComparison;
  std::vector<Expression> operands;  // at least two of kAnd and kOr, one of kNot
  Comparison comparison;             // of kComparison
};

// The order of a list: `eval/loss`, `-eval/loss`, `eval/loss desc`, `min(eval/loss) best`.
struct Order {
  enum class Direction { kAscending, kDescending, kBest };
  Name name;
  Direction direction = Direction::kAscending;
};

// Returns the spelling of an operator.
absl::string_view NameOf(Operator op);

// Each returns false and sets `mistake` if the text isn't of its kind. The first leaves nothing in
// `filter` for a text of spaces alone, which matches everything.
[[nodiscard]] bool Parse(absl::string_view text, std::optional<Expression>* filter,
                         Mistake* mistake);
[[nodiscard]] bool ParseOrder(absl::string_view text, Order* order, Mistake* mistake);
[[nodiscard]] bool ParseName(absl::string_view text, Name* name, Mistake* mistake);

}  // namespace ablate::filter

#endif  // ABLATE_SERVER_FILTER_FILTER_H_
