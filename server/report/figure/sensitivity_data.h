// The compared metric over the values of the first tuned axis, as plain data. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_SENSITIVITY_DATA_H_
#define ABLATE_SERVER_REPORT_FIGURE_SENSITIVITY_DATA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/statistics.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {

// One setting at one value of the axis.
struct ResponsePoint {
  bool present = false;
  report::Summary own;                 // over the seeds that converged
  std::vector<report::SeedRun> seeds;  // that converged
  size_t n = 0, diverged = 0;
};

struct Response {
  std::string label;
  size_t style = 0;
  std::vector<ResponsePoint> points;  // one a label of the axis
  size_t diverged = 0;                // in all
};

struct SensitivityData {
  std::string axis;
  std::vector<std::string> labels;
  std::vector<double> values;  // numbers of the labels; empty if they are not numbers
  std::vector<Response> settings;
  // At which values of the other tuned axes: "warmup 100"; empty if there are none.
  std::string others;
};

// FAILED_PRECONDITION if no axis is tuned, or its values are chosen by something else than what is
// compared.
absl::StatusOr<SensitivityData> SensitivityOf(const Input& input);

// axis,setting,value,seed,metric,low,high,n,diverged
std::string SensitivityCsv(const SensitivityData& sensitivity);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_SENSITIVITY_DATA_H_
