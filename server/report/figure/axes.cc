#include "server/report/figure/axes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {
namespace {

constexpr double kMaxPlain = 1e7;
constexpr int kMaxDecimals = 6;
constexpr double kSlack = 1e-9;  // fraction of a tick's distance: rounding at the ends

// A step of 1, 2, 2.5 or 5 times a power of ten, and its decimals.
struct Step {
  double size = 1;
  int decimals = 0;
};

Step RoundStep(double least, bool whole_numbers) {
  const int exponent = static_cast<int>(std::floor(std::log10(least)));
  const double power = std::pow(10, exponent);
  static constexpr std::array<std::pair<double, int>, 5> kSteps = {
      {{1, 0}, {2, 0}, {2.5, 1}, {5, 0}, {10, -1}}};
  for (const auto& [factor, more] : kSteps) {
    const Step step{factor * power, std::max(0, more - exponent)};
    if (step.size < least * (1 - kSlack)) continue;
    if (!whole_numbers || (step.size >= 1 && step.size == std::round(step.size))) return step;
  }
  return {10 * power, 0};
}

Axis WithRange(const Extent& extent, double pad, bool whole_numbers) {
  Axis axis;
  if (extent.empty()) return axis;
  const double length = extent.high() - extent.low();
  const double size = std::max(std::abs(extent.low()), std::abs(extent.high()));
  // A single value, or nearly one (its digits would not fit beside an axis): pads by a tenth.
  const bool single = length <= size * 1e-7;
  const double around = size > 0 && !whole_numbers ? size * 0.1 : 1;
  const double room = single ? around : length * pad;
  axis.low = extent.low() - room;
  axis.high = extent.high() + room;
  return axis;
}

std::string LogLabel(double value, int exponent) {
  if (value >= 0.00099 && value <= 1001) return ShortNumber(value);
  const double mantissa = value / std::pow(10, exponent);
  if (std::abs(mantissa - 1) < kSlack) return PowerOfTen(exponent);
  return absl::StrCat(ShortNumber(mantissa), "×", PowerOfTen(exponent));
}

}  // namespace

void Extent::Add(double value) {
  if (!std::isfinite(value)) return;
  const bool first = empty();
  low_ = first ? value : std::min(low_, value);
  high_ = first ? value : std::max(high_, value);
}

std::string PowerOfTen(int exponent) {
  static constexpr std::array<absl::string_view, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                                "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : absl::StrCat(std::abs(exponent))) {
    absl::StrAppend(&text, kDigits[static_cast<size_t>(digit - '0')]);
  }
  return text;
}

std::string AxisNumber(double value, int decimals) {
  if (decimals > kMaxDecimals || std::abs(value) >= kMaxPlain) {
    if (value == 0) return "0";
    const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
    return absl::StrCat(AxisNumber(value / std::pow(10, exponent), 1), "×", PowerOfTen(exponent));
  }
  const std::string digits = absl::StrFormat("%.*f", decimals, std::abs(value));
  const bool zero = digits.find_first_not_of("0.") == std::string::npos;
  return absl::StrCat(value < 0 && !zero ? "−" : "", zero ? "0" : digits);
}

std::string ShortNumber(double value) {
  const std::string text = absl::StrFormat("%.4g", value);
  const size_t e = text.find('e');
  if (e == std::string::npos) {
    return absl::StrCat(value < 0 ? "−" : "", absl::StripPrefix(text, "-"));
  }
  const int exponent = static_cast<int>(std::lround(std::floor(std::log10(std::abs(value)))));
  const std::string mantissa = text.substr(0, e);
  return absl::StrCat(mantissa == "1" ? "" : absl::StrCat(mantissa, "×"), PowerOfTen(exponent));
}

namespace {

// Returns about `count` ticks at multiples of a round step.
std::vector<Tick> RoundTicks(const Axis& axis, size_t count, bool whole_numbers) {
  const double length = axis.high - axis.low;
  const Step step = RoundStep(length / static_cast<double>(count), whole_numbers);
  std::vector<Tick> ticks;
  const double first = std::ceil(axis.low / step.size - kSlack);
  for (double i = first; i * step.size <= axis.high + kSlack * step.size; ++i) {
    const double at = i * step.size;
    ticks.push_back({at, AxisNumber(at, step.decimals)});
  }
  return ticks;
}

}  // namespace

Axis LinearAxis(const Extent& extent, double pad, size_t max_ticks, bool whole_numbers) {
  Axis axis = WithRange(extent, pad, whole_numbers);
  if (extent.empty()) return axis;
  const size_t wanted = std::max<size_t>(max_ticks, 1);
  axis.ticks = RoundTicks(axis, wanted, whole_numbers);
  // One tick shows no scale.
  const bool shows_none = axis.ticks.size() < 2 && !whole_numbers;
  if (shows_none) axis.ticks = RoundTicks(axis, 2 * wanted, whole_numbers);
  return axis;
}

Axis StepAxis(const Extent& extent, size_t max_ticks) {
  constexpr double kNear = 0.02;
  Axis plain = LinearAxis(extent, 0, max_ticks, true);
  if (extent.low() == extent.high()) plain.ticks = {{extent.low(), AxisNumber(extent.low(), 0)}};
  if (plain.ticks.size() < 2) return plain;
  const double distance = plain.ticks[1].at - plain.ticks[0].at;
  const double first = plain.ticks.front().at - distance, last = plain.ticks.back().at + distance;
  const double near = kNear * (plain.high - plain.low);
  Extent extended = extent;
  if (plain.low - first <= near && first >= 0) extended.Add(first);
  if (last - plain.high <= near) extended.Add(last);
  return LinearAxis(extended, 0, max_ticks, true);
}

size_t TicksOver(double inches) { return static_cast<size_t>(std::max(inches / 0.26, 3.0)); }

Axis LogAxis(const Extent& extent, double pad, size_t max_ticks) {
  Axis axis;
  axis.log = true;
  const double factor = std::max(std::pow(extent.high() / extent.low(), pad), 1.05);
  axis.low = extent.low() / factor;
  axis.high = extent.high() * factor;
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
  const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
  const bool within_decades = std::log10(axis.high / axis.low) < 2;
  const int stride = std::max(1, (last - first) / static_cast<int>(std::max<size_t>(max_ticks, 1)));
  for (int exponent = first; exponent <= last; ++exponent) {
    for (const double digit : {1.0, 2.0, 3.0, 5.0}) {
      if (digit > 1 && !within_decades) break;
      if (!within_decades && (exponent - first) % stride != 0) break;
      const double at = digit * std::pow(10, exponent);
      if (at >= axis.low && at <= axis.high) axis.ticks.push_back({at, LogLabel(at, exponent)});
    }
  }
  return axis;
}

namespace {

// Returns round ratios within the axis, as few as fit: 1, 2, 3 and 5 times powers of ten, or some
// of them, or every so many powers, always with 1.
std::vector<Tick> RatioTicks(const Axis& axis, size_t max_ticks) {
  const double decade = std::log(10);
  const int first = static_cast<int>(std::floor(axis.low / decade));
  const int last = static_cast<int>(std::ceil(axis.high / decade));
  const auto ticks = [&](const std::vector<int>& digits, int stride) {
    std::vector<Tick> found;
    for (int exponent = first; exponent <= last; ++exponent) {
      if (exponent % stride != 0) continue;
      for (const int digit : digits) {
        const double at = std::log(digit) + exponent * decade;
        if (at < axis.low - kSlack || at > axis.high + kSlack) continue;
        found.push_back({at, absl::StrCat("×", LogLabel(std::exp(at), exponent))});
      }
    }
    return found;
  };
  const std::vector<int> kDigits[] = {{1, 2, 3, 5}, {1, 2, 5}, {1, 3}};
  for (const std::vector<int>& digits : kDigits) {
    std::vector<Tick> found = ticks(digits, 1);
    if (found.size() <= max_ticks) return found;
  }
  int stride = 1;
  while (ticks({1}, stride).size() > std::max<size_t>(max_ticks, 2)) ++stride;
  return ticks({1}, stride);
}

}  // namespace

Axis RatioAxis(const Extent& logarithms, double pad, size_t max_ticks) {
  constexpr double kNarrow = 3;  // factor below which ratios are nearly equidistant
  Axis axis = LinearAxis(logarithms, pad, max_ticks);
  if (logarithms.empty()) return axis;
  if (axis.high - axis.low > std::log(kNarrow)) {
    axis.ticks = RatioTicks(axis, max_ticks);
    return axis;
  }
  Extent ratios;
  ratios.Add(std::exp(axis.low));
  ratios.Add(std::exp(axis.high));
  axis.ticks.clear();
  for (const Tick& tick : LinearAxis(ratios, 0, max_ticks).ticks) {
    axis.ticks.push_back({std::log(tick.at), absl::StrCat("×", tick.label)});
  }
  return axis;
}

Axis ValueAxis(const Extent& extent, double pad, size_t max_ticks) {
  const bool log = !extent.empty() && extent.low() > 0 && extent.high() / extent.low() >= 100;
  if (log) return LogAxis(extent, pad, max_ticks);
  // Upwards a few more ticks than planned do no harm, only two would.
  return LinearAxis(extent, pad, max_ticks + max_ticks / 4 + 1);
}

std::string SentenceName(const report::MetricName& name) {
  // Keys are shown as they are written.
  return absl::StrContains(name.text, '/') ? name.text : report::Capitalized(name.text);
}

std::string AxisTitle(const report::MetricName& name) {
  const std::string title = SentenceName(name);
  return name.unit.empty() || title.empty() ? title : absl::StrCat(title, " (", name.unit, ")");
}

namespace {

std::string WholeDifferenceTitle(report::Scale scale, const report::MetricName& name,
                                 const std::string& baseline) {
  if (scale == report::Scale::kRatio) {
    return absl::StrCat(name.text, ", ratio to ", baseline.empty() ? "its baseline" : baseline);
  }
  return absl::StrCat("Δ ", name.text, baseline.empty() ? "" : absl::StrCat(" vs ", baseline),
                      name.unit.empty() ? "" : absl::StrCat(" (", name.unit, ")"));
}

}  // namespace

std::string DifferenceTitle(report::Scale scale, const report::MetricName& name,
                            const std::string& baseline, double max_width) {
  const std::string title = WholeDifferenceTitle(scale, name, baseline);
  return TextWidth(title, kTitleSize) <= max_width ? title : WholeDifferenceTitle(scale, name, "");
}

std::string BaselineNote(report::Scale scale, const report::MetricName& name,
                         const std::string& baseline, double max_width) {
  const std::string title = WholeDifferenceTitle(scale, name, baseline);
  return baseline.empty() || TextWidth(title, kTitleSize) <= max_width
             ? ""
             : absl::StrCat("baseline: ", report::Listed(baseline));
}

std::string DifferenceName(report::Scale scale, const report::MetricName& name) {
  return absl::StrCat(scale == report::Scale::kRatio ? "Ratio of " : "Difference in ", name.text);
}

}  // namespace ablate::figure
