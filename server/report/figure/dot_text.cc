// Numbers beside the rows of a dot figure.
#include "server/report/figure/dot_text.h"

#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/report/text.h"

namespace ablate::figure {
namespace {

// Figures write the zero that sentences leave out, as their axes do.
std::string WithZero(const std::string& number) {
  const size_t point = number.find('.');
  const bool bare =
      point != std::string::npos &&
      (point == 0 || std::isdigit(static_cast<unsigned char>(number[point - 1])) == 0);
  return bare ? absl::StrCat(number.substr(0, point), "0", number.substr(point)) : number;
}

std::string NumberText(double value, int decimals, bool sign) {
  return WithZero(sign ? report::Signed(value, decimals) : report::Plain(value, decimals));
}

std::string ReasonText(report::Undefined reason, bool sign) {
  return std::string(sign ? report::PairReasonText(reason) : report::ReasonText(reason));
}

}  // namespace

std::string ValueText(const report::Number& mean, const report::Interval& interval, bool sign) {
  if (!mean.defined()) return ReasonText(mean.undefined, sign);
  const int decimals = report::DecimalsFor(mean.value, interval);
  const std::string value = NumberText(mean.value, decimals, sign);
  if (!interval.defined()) return absl::StrCat(value, ", no interval");
  return absl::StrCat(value, " [", NumberText(interval.low, decimals, sign), ", ",
                      NumberText(interval.high, decimals, sign), "]");
}

std::string ShortValueText(const report::Number& mean, const report::Interval& interval,
                           bool sign) {
  if (!mean.defined()) return ReasonText(mean.undefined, sign);
  const int decimals = report::DecimalsFor(mean.value, interval);
  const std::string value = NumberText(mean.value, decimals, sign);
  if (!interval.defined()) return value;
  return absl::StrCat(value, " ± ",
                      NumberText((interval.high - interval.low) / 2, decimals, false));
}

}  // namespace ablate::figure
