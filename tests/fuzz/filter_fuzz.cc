// Fuzzes the parser of filters with libFuzzer.
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/filter/filter.h"

namespace ablate::filter {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Checks the limits of a tree; returns its number of comparisons.
size_t CheckTree(const Expression& expression, int depth) {
  // An AND or OR below each level of nesting, and a comparison below the last.
  Require(depth <= 2 * kMaxNesting + 2);
  if (expression.kind == Expression::Kind::kComparison) {
    Require(expression.operands.empty());
    return 1;
  }
  const bool is_not = expression.kind == Expression::Kind::kNot;
  Require(is_not ? expression.operands.size() == 1 : expression.operands.size() >= 2);
  size_t comparisons = 0;
  for (const Expression& operand : expression.operands) {
    comparisons += CheckTree(operand, depth + 1);
  }
  return comparisons;
}

void CheckMistake(const Mistake& mistake, size_t size) {
  Require(mistake.column >= 1 && mistake.column <= size + 1);
  Require(!mistake.complaint.empty() && mistake.complaint.size() < 300);
  Require(!mistake.expected.empty());
}

void Try(absl::string_view text) {
  Mistake mistake;
  std::optional<Expression> filter;
  if (!Parse(text, &filter, &mistake)) {
    CheckMistake(mistake, text.size());
  } else if (filter.has_value()) {
    Require(CheckTree(*filter, 0) <= kMaxComparisons);
  }
  Order order;
  if (!ParseOrder(text, &order, &mistake)) CheckMistake(mistake, text.size());
  Name name;
  if (!ParseName(text, &name, &mistake)) CheckMistake(mistake, text.size());
}

}  // namespace
}  // namespace ablate::filter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::filter::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
