#include "base/decimal.h"

#include <charconv>
#include <cmath>

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
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  text->append(digits, end.ptr);
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
