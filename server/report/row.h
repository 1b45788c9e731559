// One row of a comparison from its runs.
#ifndef ABLATE_SERVER_REPORT_ROW_H_
#define ABLATE_SERVER_REPORT_ROW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/report/comparison.h"
#include "server/report/grid.h"

namespace ablate::report {

// A run that stands for its row on one seed. It has a result.
struct PickedRun {
  uint32_t seed = 0;
  const Cell* cell = nullptr;
  size_t candidate = 0;  // of the grid row
  Trial trial;
};

// The runs that the picks lead to, ascending by seed; seeds whose pick has no result are left out.
std::vector<PickedRun> RunsOf(const GridRow& row, const std::vector<std::optional<size_t>>& picks);

// What the runs say on their own: fields up to `own`, `mean` and `interval` equal to it, and costs.
// `labels` of the candidates' tuned axes are filled into runs and `chosen`.
ComparisonRow DescribeRow(const ComparisonInput& input, const Grid& grid, const GridRow& row,
                          const std::vector<PickedRun>& runs);

// Adds the comparison with the baseline's runs to `row`: pairs, difference, and the mean and
// interval over the pairs where both converged, if there are any. `resamples` of the bootstrap, 0
// for none.
void CompareRow(const std::vector<PickedRun>& runs, const std::vector<PickedRun>& baseline,
                Better better, size_t resamples, ComparisonRow* row);

// Paths at which what is scored differs between any two cells of the row and its baseline;
// ascending.
std::vector<std::string> ScoredDifferently(const GridRow& row, const GridRow& baseline);

// Paths whose values differ between the two rows at a combination of tuned values that both have;
// ascending.
std::vector<std::string> ChangedPaths(const GridRow& row, const GridRow& baseline);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_ROW_H_
