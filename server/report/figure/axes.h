// Axes: ranges, ticks, the numbers beside them, and what metrics are called on them. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_AXES_H_
#define ABLATE_SERVER_REPORT_FIGURE_AXES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/metric_names.h"
#include "server/report/compare/scale.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// A range that grows with what it is given; what is not finite is passed over.
class Extent {
 public:
  void Add(double value);
  bool empty() const { return !(low_ <= high_); }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_ = 1, high_ = 0;
};

// A number on an axis: "−.025" (U+2212, no sign on what rounds to 0, which is "0"); "2×10⁻⁶" for
// the very large or small.
std::string AxisNumber(double value, int decimals);

// One with as few digits as it has, up to four significant ones: ".001", "20000".
std::string ShortNumber(double value);

// "10⁻⁴".
std::string PowerOfTen(int exponent);

// An axis over `extent` with room of `pad` of its length at both ends, and about `max_ticks` round
// ticks within it. Of an empty extent: 0 to 1 without ticks; of a single value: some room around
// it.
Axis LinearAxis(const Extent& extent, double pad, size_t max_ticks, bool whole_numbers = false);

// A linear axis over logarithms of ratios, at whose ticks the ratios stand: "×.5", "×1", "×2".
Axis RatioAxis(const Extent& logarithms, double pad, size_t max_ticks);

// Steps: whole numbers, and up to the next tick where that is near (999 of 1000).
Axis StepAxis(const Extent& extent, size_t max_ticks);

// Ticks that have room along so many inches upwards.
size_t TicksOver(double inches);

// Logarithmic, of a positive extent.
Axis LogAxis(const Extent& extent, double pad, size_t max_ticks);

// Logarithmic if the extent is positive and spans a factor of 100 or more.
Axis ValueAxis(const Extent& extent, double pad, size_t max_ticks);

// "Held-out loss": where a sentence begins.
std::string SentenceName(const report::MetricName& name);

// "Held-out loss (nats)": an axis's title.
std::string AxisTitle(const report::MetricName& name);

// "Δ held-out loss vs pre (nats)", "gradient norm, ratio to pre": the title of an axis of
// differences on the scale. "" for several baselines. If that is wider than `max_width` (inches)
// the baseline's name is cut, or left out if little of it would remain; metric and unit stay.
std::string DifferenceTitle(report::Scale scale, const report::MetricName& name,
                            const std::string& baseline, double max_width);

// "Difference in held-out loss", "Ratio of gradient norm".
std::string DifferenceName(report::Scale scale, const report::MetricName& name);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_AXES_H_
