// A metric over the values of an axis: a line a setting through its means, with intervals, seeds
// and counts of runs that diverged; small multiples where there are many. What kinds of figures
// over an axis share. Pure functions.
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
  bool present = false;
  bool baseline = false;               // is shown as the baseline, by a ring
  report::Summary own;                 // over the seeds that converged
  std::vector<report::SeedRun> seeds;  // that converged
  size_t n = 0, diverged = 0;
};

ResponsePoint PointOf(const report::ComparisonRow& row);

struct Response {
  std::string label;  // empty: there is only this one
  size_t style = 0;
  std::vector<ResponsePoint> points;  // one a label of the axis
  size_t diverged = 0;                // in all
};

struct Responses {
  std::string axis;
  std::vector<std::string> labels;
  std::vector<double> values;  // numbers of the labels; empty if they are not numbers
  // The axis is logarithmic if its values are positive and span this factor or more.
  double log_from = 5;
  std::vector<Response> settings;
  // Of small multiples: whether style 0 is the baseline's alone, and what the colours mean.
  bool one_baseline = false;
  std::string colours{};
  std::vector<std::string> remarks{};                // said last in the footnote
  report::Scale scale = report::Scale::kDifference;  // of which the means are
};

// Puts the values, where they are numbers, into ascending order, so that no line runs back.
void SortByValue(Responses* responses);

// The figure of the compared metric, and its numbers as axis,setting,value,seed,metric,low,high,n,
// diverged: means without a seed, seeds without an interval. The error of `responses`;
// INVALID_ARGUMENT if there are more settings than fit on a page.
absl::StatusOr<Drawing> DrawResponses(const absl::StatusOr<Responses>& responses,
                                      const Input& input);

// The end of a caption: "mean and 95 % interval at each value tried", and what stands for runs that
// diverged in a figure of that width.
std::string ResponsesCaption(const Responses& responses, double width);

// What can be seen: "pre 2.40 at .004 and 2.45 at .01; post none".
std::string MeansText(const Responses& responses);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_RESPONSES_H_
