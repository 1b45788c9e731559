#include "base/decimal.h"

#include <cfloat>
#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"

namespace ablate::text {

std::string ShortestDecimal(double value) {
  if (value == 0) return "0";
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double magnitude = std::fabs(value);
  const bool fixed = magnitude >= 1e-4 && magnitude < 1e16;
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(digits, end.ptr);
}

void AppendDecimal(double value, std::string* text) {
  char digits[32];
  // Digits without a point or exponent are an integer for a reader, and too large for 64 bits.
  const auto end = std::fabs(value) < 1e16 ? std::to_chars(digits, digits + sizeof(digits), value)
                                           : std::to_chars(digits, digits + sizeof(digits), value,
                                                           std::chars_format::scientific);
  text->append(digits, end.ptr);
}

std::string DecimalProblem(absl::string_view decimal) {
  double value = 0;
  const absl::string_view mantissa = decimal.substr(0, decimal.find_first_of("eE"));
  const bool has_value = mantissa.find_first_of("123456789") != absl::string_view::npos;
  if (!has_value || !absl::SimpleAtod(decimal, &value)) return "";
  if (std::isinf(value)) return "is too large; expected a number of at most 1.79e+308 in size";
  if (std::fabs(value) >= DBL_MIN) return "";
  return "is too small and would become 0; expected 0, or a number of at least 2.23e-308 in size";
}

std::string GroupDigits(absl::string_view digits) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool after_digit = i > 0 && digits[i - 1] != '-';
    if (after_digit && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

}  // namespace ablate::text
