// Formats numbers: a double as the shortest text that reads back as it, whole numbers with grouped
// digits.
#ifndef ABLATE_BASE_DECIMAL_H_
#define ABLATE_BASE_DECIMAL_H_

#include <concepts>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::text {

// Returns the shortest decimal that reads back as the same double: 0.001, 5e-05, 1000000, 1e+16.
// Fixed notation from 1e-4 to below 1e16; whole numbers have no point; -0 becomes 0; nan, inf,
// -inf.
std::string ShortestDecimal(double value);

// Appends the shortest text that reads back as `value`, in the shorter of both notations (1e+06),
// and with an exponent from 1e16 on. For programs that read many numbers; -0 keeps its sign.
void AppendDecimal(double value, std::string* text);

// Returns the problem of a decimal that no double stands for, such as 1e-400, as "PROBLEM; expected
// RANGE"; empty if one does, and for a text that isn't a decimal. Magnitudes below the smallest
// normal double count as 0, as computations take them.
std::string DecimalProblem(absl::string_view decimal);

// Inserts commas between the thousands of a whole number, which may begin with a sign.
std::string GroupDigits(absl::string_view digits);

// Formats as 1,234,567 or -1,234.
template <std::integral Number>
std::string Grouped(Number number) {
  return GroupDigits(absl::StrCat(number));
}

}  // namespace ablate::text

#endif  // ABLATE_BASE_DECIMAL_H_
