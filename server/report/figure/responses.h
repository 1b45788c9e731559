// Draws a metric over the values of an axis: a line per setting through its means, with intervals,
// seeds and counts of diverged runs; small multiples for many settings. Shared by the kinds of
// figures over an axis. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_RESPONSES_H_
#define ABLATE_SERVER_REPORT_FIGURE_RESPONSES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/scale.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {

// One setting at one value of the axis.
struct ResponsePoint {
  bool tried = false;  // in the grid
  bool present = false;
  bool baseline = false;               // marked as the baseline by a ring
  report::Summary own;                 // over the converged seeds, or the sequences of one
  std::vector<report::SeedRun> seeds;  // converged ones; none if `own` is over sequences
  size_t n = 0, diverged = 0;
};

ResponsePoint PointOf(const report::ComparisonRow& row);

struct Response {
  std::string label;  // empty: there is only this one
  size_t style = 0;
  std::vector<ResponsePoint> points;  // one per label of the axis
  size_t diverged = 0;                // in all
};

struct Responses {
  std::string axis;
  std::vector<std::string> labels;
  std::vector<double> values;  // the labels' numbers; empty if they aren't numbers
  // The axis is logarithmic if its values are positive and span this factor or more.
  double log_from = 5;
  std::vector<Response> settings;
  // In small multiples: whether style 0 is the baseline's alone, and the meaning of the colours.
  bool one_baseline = false;
  std::string colours{};
  std::vector<std::string> remarks{};                // at the end of the footnote
  report::Scale scale = report::Scale::kDifference;  // of the means
  report::Unit unit = report::Unit::kSeed;           // of the intervals
};

// Sorts numeric values in ascending order, so that no line runs back.
void SortByValue(Responses* responses);

// Returns the figure of the compared metric, and its numbers as
// axis,setting,value,seed,metric,low,high, n,diverged: means without a seed, seeds without an
// interval. The error of `responses`; INVALID_ARGUMENT if there are more settings than fit on a
// page.
absl::StatusOr<Drawing> DrawResponses(const absl::StatusOr<Responses>& responses,
                                      const Input& input);

// Returns the end of a caption: "mean and 95 % interval at each value tried", and how a figure of
// that width shows diverged runs.
std::string ResponsesCaption(const Responses& responses, double width);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_RESPONSES_H_
