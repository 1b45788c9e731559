#include "server/report/compare/windows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/report/compare/metric_names.h"

namespace ablate::report {
namespace {

constexpr double kBreak = std::numeric_limits<double>::quiet_NaN();

size_t CountNonFinite(absl::Span<const double> values) {
  return static_cast<size_t>(std::count_if(values.begin(), values.end(),
                                           [](double value) { return !std::isfinite(value); }));
}

// The sum of some points and the number of non-finite ones, which aren't in the sum.
struct PartialSum {
  CompensatedSum sum;
  size_t nonfinite = 0;

  void Add(double value) {
    if (std::isfinite(value)) {
      sum.Add(value);
    } else {
      ++nonfinite;
    }
  }

  void Add(const PartialSum& other) {
    sum.Add(other.sum);
    nonfinite += other.nonfinite;
  }

  double MeanOf(size_t points) const {
    return nonfinite > 0 ? kBreak : sum.Total() / static_cast<double>(points);
  }
};

// For each point the sum from the start of its block of `width` points to it, or from it to its
// block's end. A window of `width` points is the end of one block and the start of the next:
// nothing is ever subtracted, so that a spike leaves no rounding error once the window has passed
// it.
std::vector<PartialSum> SumsFromBlockStart(absl::Span<const double> values, size_t width) {
  std::vector<PartialSum> sums(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % width != 0) sums[i] = sums[i - 1];
    sums[i].Add(values[i]);
  }
  return sums;
}

std::vector<PartialSum> SumsToBlockEnd(absl::Span<const double> values, size_t width) {
  std::vector<PartialSum> sums(values.size());
  for (size_t i = values.size(); i-- > 0;) {
    if ((i + 1) % width != 0 && i + 1 < values.size()) sums[i] = sums[i + 1];
    sums[i].Add(values[i]);
  }
  return sums;
}

}  // namespace

absl::StatusOr<WindowValue> Reduce(absl::Span<const double> values, const Window& window) {
  if (window.side != WindowSide::kAll && window.points == 0) {
    return absl::InvalidArgumentError("window.points: 0; expected at least 1");
  }
  const size_t points =
      window.side == WindowSide::kAll ? values.size() : std::min(window.points, values.size());
  const absl::Span<const double> part =
      window.side == WindowSide::kLast ? values.last(points) : values.first(points);
  WindowValue result{NoNumber(Undefined::kTooFewRuns), points, CountNonFinite(part)};
  if (part.empty()) return result;
  if (result.nonfinite > 0) {
    result.value = NoNumber(Undefined::kNonFinite);
    return result;
  }
  switch (window.reduction) {
    case Reduction::kMean:
      result.value = Mean(part);
      break;
    case Reduction::kMin:
      result.value = Defined(*std::min_element(part.begin(), part.end()));
      break;
    case Reduction::kMax:
      result.value = Defined(*std::max_element(part.begin(), part.end()));
      break;
  }
  return result;
}

absl::StatusOr<Curve> TrailingMean(absl::Span<const uint32_t> steps,
                                   absl::Span<const double> values, size_t width) {
  if (width < 1 || width > kMaxSmoothing) {
    return absl::InvalidArgumentError(
        absl::StrCat("smooth: ", width, "; expected 1 to ", kMaxSmoothing));
  }
  Curve curve;
  curve.nonfinite = CountNonFinite(values);
  if (values.size() < width) return curve;
  const std::vector<PartialSum> from_start = SumsFromBlockStart(values, width);
  const std::vector<PartialSum> to_end = SumsToBlockEnd(values, width);
  for (size_t last = width - 1; last < values.size(); ++last) {
    const size_t first = last + 1 - width;
    PartialSum sum = from_start[last];
    if (first % width != 0) sum.Add(to_end[first]);
    curve.steps.push_back(steps[last]);
    curve.values.push_back(sum.MeanOf(width));
  }
  return curve;
}

Curve CumulativeMean(absl::Span<const uint32_t> steps, absl::Span<const double> values) {
  Curve curve;
  PartialSum sum;
  for (size_t i = 0; i < values.size(); ++i) {
    sum.Add(values[i]);
    curve.steps.push_back(steps[i]);
    curve.values.push_back(sum.MeanOf(i + 1));
  }
  curve.nonfinite = sum.nonfinite;
  return curve;
}

std::string WindowName(const MetricWindow& window, MetricSource source) {
  constexpr absl::string_view kReductions[] = {"mean", "smallest", "largest"};
  std::string name = absl::StrCat(NameOfMetric(window.key, source).text, ", ",
                                  kReductions[static_cast<int>(window.window.reduction)]);
  if (window.window.side == WindowSide::kAll) return name;
  return absl::StrCat(name, " of the ",
                      window.window.side == WindowSide::kFirst ? "first " : "last ",
                      window.window.points);
}

WindowSummary SummarizeWindow(absl::Span<const WindowValue> runs, Scale scale) {
  WindowSummary summary;
  std::vector<double> values;
  for (const WindowValue& run : runs) {
    if (!run.value.defined()) {
      ++summary.left_out;
      continue;
    }
    summary.fewest_points =
        values.empty() ? run.points : std::min(summary.fewest_points, run.points);
    values.push_back(run.value.value);
  }
  const bool positive =
      std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
  if (!positive) scale = Scale::kDifference;
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back(OnScale(scale, value));
  summary.over = OffScale(scale, Summarize(scaled));
  summary.values = std::move(values);
  return summary;
}

}  // namespace ablate::report
