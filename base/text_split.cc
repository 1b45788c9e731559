#include "base/text_split.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace ablate {

uint64_t TrainingTokens(uint64_t tokens, double validation) {
  // 1 − 0.8 is a little below 0.2 in binary: a product within rounding of a whole number counts as
  // that number.
  const double training = static_cast<double>(tokens) * (1 - validation);
  return static_cast<uint64_t>(std::floor(training * (1 + 1e-13) + 1e-9));
}

// The fractions that hold out these tokens lie in an interval of length 1 / tokens, so that one of
// ten digits is among them.
std::string ValidationOf(uint64_t held_out, uint64_t tokens) {
  constexpr int kMostDigits = 10;
  std::string decimal;
  uint64_t scale = 1;
  for (int digits = 1; digits <= kMostDigits; ++digits) {
    scale *= 10;
    decimal = absl::StrFormat("0.%0*d", digits, held_out * scale / tokens);
    double validation = 0;
    if (!absl::SimpleAtod(decimal, &validation) || validation == 0) continue;
    if (TrainingTokens(tokens, validation) == tokens - held_out) break;
  }
  return decimal;
}

}  // namespace ablate
