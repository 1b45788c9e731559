// Axes: ranges, ticks, their numbers, and titles with the metrics' names. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_AXES_H_
#define ABLATE_SERVER_REPORT_FIGURE_AXES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/metric_names.h"
#include "server/report/compare/scale.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// A range that grows to include added values; ignores non-finite ones.
class Extent {
 public:
  void Add(double value);
  bool empty() const { return !(low_ <= high_); }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_ = 1, high_ = 0;
};

// Formats a number for an axis: "−0.025" (U+2212; zeros become "0"); "2×10⁻⁶" if very large or
// small.
std::string AxisNumber(double value, int decimals);

// The same with as few digits as it has, up to four significant ones: "0.001", "20000".
std::string ShortNumber(double value);

// Returns "10⁻⁴".
std::string PowerOfTen(int exponent);

// Returns an axis over `extent`, padded by the fraction `pad` at both ends, with about `max_ticks`
// round ticks. An empty extent gives 0 to 1 without ticks; a single value some room around it.
Axis LinearAxis(const Extent& extent, double pad, size_t max_ticks, bool whole_numbers = false);

// Returns a linear axis over logarithms of ratios, with ratios at its ticks: "×0.5", "×1", "×2".
Axis RatioAxis(const Extent& logarithms, double pad, size_t max_ticks);

// Returns an axis of steps: whole numbers, extended to the next tick if that is near (999 of 1000).
Axis StepAxis(const Extent& extent, size_t max_ticks);

// Returns how many ticks fit along so many inches upwards.
size_t TicksOver(double inches);

// Returns a logarithmic axis over a positive extent.
Axis LogAxis(const Extent& extent, double pad, size_t max_ticks);

// Returns a logarithmic axis if the extent is positive and spans a factor of 100 or more; otherwise
// a linear one.
Axis ValueAxis(const Extent& extent, double pad, size_t max_ticks);

// Returns the name for the beginning of a sentence: "Held-out loss".
std::string SentenceName(const report::MetricName& name);

// Returns an axis's title: "Held-out loss (nats)".
std::string AxisTitle(const report::MetricName& name);

// Returns the title of an axis of differences on the scale: "Δ held-out loss vs pre (nats)",
// "gradient norm, ratio to pre". "" for several baselines. If it is wider than `max_width` (inches)
// the baseline's name is left out.
std::string DifferenceTitle(report::Scale scale, const report::MetricName& name,
                            const std::string& baseline, double max_width);

// Returns "baseline: pre" for the footnote if that title leaves the name out; otherwise "".
std::string BaselineNote(report::Scale scale, const report::MetricName& name,
                         const std::string& baseline, double max_width);

// Returns "Difference in held-out loss", "Ratio of gradient norm".
std::string DifferenceName(report::Scale scale, const report::MetricName& name);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_AXES_H_
