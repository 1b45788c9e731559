#include "server/report/compare/wording.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/decimal.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {
namespace {

constexpr int kMaxDecimals = 8;
constexpr int kScientific = -1;
constexpr double kMaxPlain = 1e7;
constexpr absl::string_view kMinus = "\u2212";

// Returns the decimals that show `digits` significant digits of `value`, which isn't 0.
int DecimalsOf(double value, int digits) {
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return std::max(0, digits - 1 - exponent);
}

// Returns the digits of |value|, without a sign.
std::string Digits(double value, int decimals) {
  const double size = std::abs(value);
  if (decimals == kScientific || size >= kMaxPlain) {
    return absl::StrReplaceAll(absl::StrFormat("%.2e", size),
                               {{"e-0", "e\u2212"}, {"e-", "e\u2212"}, {"e+0", "e"}, {"e+", "e"}});
  }
  return absl::StrFormat("%.*f", decimals, size);
}

bool IsZero(const std::string& digits) {
  return digits.substr(0, digits.find('e')).find_first_not_of("0.") == std::string::npos;
}

}  // namespace

int DecimalsFor(double mean, const Interval& interval) {
  if (!interval.defined()) return DecimalsFor(mean);
  const double half = (interval.high - interval.low) / 2;
  if (!(half > 0)) return DecimalsFor(mean);
  int decimals = DecimalsOf(half, 1);
  if (half * std::pow(10.0, decimals) < 4.95) ++decimals;
  for (const double bound : {interval.low, interval.high}) {
    while (bound != 0 && decimals <= kMaxDecimals && PrintsAsZero(bound, decimals)) ++decimals;
  }
  return decimals > kMaxDecimals ? kScientific : decimals;
}

int DecimalsFor(double value) {
  if (value == 0) return 0;
  const int decimals = DecimalsOf(value, 3);
  return decimals > kMaxDecimals ? kScientific : decimals;
}

bool PrintsAsZero(double value, int decimals) {
  return value == 0 ||
         (decimals != kScientific && std::abs(value) * std::pow(10.0, decimals) < 0.5);
}

std::string Plain(double value, int decimals) {
  const std::string digits = Digits(value, decimals);
  return absl::StrCat(value < 0 && !IsZero(digits) ? kMinus : "", digits);
}

std::string Plain(double value) { return Plain(value, DecimalsFor(value)); }

std::string Signed(double value, int decimals) {
  const std::string digits = Digits(value, decimals);
  return absl::StrCat(IsZero(digits) ? "" : value < 0 ? kMinus : "+", digits);
}

std::string NumberWords::text() const { return Together({value, interval}, " "); }

std::string SettingName(absl::Span<const std::string> axes, absl::Span<const std::string> labels) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < labels.size(); ++i) {
    double value = 0;
    const bool bare =
        labels[i] == "true" || labels[i] == "false" || absl::SimpleAtod(labels[i], &value);
    parts.push_back(bare ? absl::StrCat(axes[i], " ", labels[i]) : labels[i]);
  }
  return parts.empty() ? "base" : absl::StrJoin(parts, ", ");
}

std::string Listed(absl::string_view name) {
  return absl::StrContains(name, ',') ? Quoted(name) : std::string(name);
}

std::string Quoted(absl::string_view name) { return absl::StrCat("\u201c", name, "\u201d"); }

std::string Together(const std::vector<std::string>& parts, absl::string_view between) {
  std::vector<std::string> said;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(said),
               [](const std::string& part) { return !part.empty(); });
  return absl::StrJoin(said, between);
}

std::string Capitalized(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text;
}

std::string PText(double p) {
  if (p < 0.001) return "p < 0.001";
  const std::string alpha = Plain(kAlpha, 3);
  for (int decimals = 3; decimals <= kMaxDecimals; ++decimals) {
    const std::string text = Plain(p, decimals);
    if (p == kAlpha || text != Plain(kAlpha, decimals)) return absl::StrCat("p = ", text);
  }
  return absl::StrCat("p = ", alpha);
}

std::string Counted(size_t count, absl::string_view noun) {
  return absl::StrCat(text::Grouped(static_cast<int64_t>(count)), " ", noun, count == 1 ? "" : "s");
}

absl::string_view ScoredText(absl::string_view key) {
  if (key == "train/loss") return "data or targets";
  return absl::StartsWith(key, "train/") ? "data" : "held-out data";
}

std::string OfRuns(size_t ended, size_t planned) {
  return absl::StrCat(text::Grouped(static_cast<int64_t>(ended)), " of ", Counted(planned, "run"));
}

std::string Enumerated(absl::Span<const std::string> parts, size_t max_parts) {
  if (parts.size() > max_parts) {
    return absl::StrCat(absl::StrJoin(parts.first(max_parts - 1), ", "), " and ",
                        parts.size() - (max_parts - 1), " more");
  }
  if (parts.size() < 2) return absl::StrJoin(parts, "");
  return absl::StrCat(absl::StrJoin(parts.first(parts.size() - 1), ", "), " and ", parts.back());
}

}  // namespace ablate::report
