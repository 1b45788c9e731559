// Another statistic than the mean, for what takes any.
#ifndef ABLATE_TESTS_REPORT_COMPARE_INTERQUARTILE_MEAN_H_
#define ABLATE_TESTS_REPORT_COMPARE_INTERQUARTILE_MEAN_H_

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// Mean of what is left when ⌊n/4⌋ values are cut at each end.
inline Number InterquartileMean(absl::Span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t cut = sorted.size() / 4;
  return Mean(absl::MakeConstSpan(sorted).subspan(cut, sorted.size() - 2 * cut));
}

}  // namespace ablate::report

#endif  // ABLATE_TESTS_REPORT_COMPARE_INTERQUARTILE_MEAN_H_
