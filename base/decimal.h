// Numbers as text that every program writes in the same way.
#ifndef ABLATE_TEXT_DECIMAL_H_
#define ABLATE_TEXT_DECIMAL_H_

#include <concepts>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::text {

// The shortest decimal that reads back as the same double: 0.001, 5e-05, 1000000, 1e+16. Fixed
// notation from 1e-4 to below 1e16, whole numbers without a point, -0 as 0; nan, inf, -inf.
std::string ShortestDecimal(double value);

// Appends the shortest text that reads back as `value`, whichever notation is shorter (1e+06), for
// programs that read many: -0 keeps its sign.
void AppendDecimal(double value, std::string* text);

// The digits of a whole number, after a sign if there is one, with commas between the thousands.
std::string GroupDigits(absl::string_view digits);

// 1,234,567; -1,234.
template <std::integral Number>
std::string Grouped(Number number) {
  return GroupDigits(absl::StrCat(number));
}

}  // namespace ablate::text

#endif  // ABLATE_TEXT_DECIMAL_H_
