// Tests the rows of a comparison: each row's own test, the family's adjustment, and the power of
// more seeds. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_
#define ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/grid.h"

namespace ablate::report {

// How rows are compared. The margin is on the scale: for ratios its logarithm.
struct Measure {
  Better better = Better::kLower;
  Scale scale = Scale::kDifference;
  std::optional<double> margin;
};

// Returns the input's measure, as far as its values allow.
Measure MeasureOf(const ComparisonInput& input);

// Sets p, by_wins and p_equivalence of a row whose pairs and difference are set, without tuning.
void Judge(const Measure& measure, ComparisonRow* row);

// Does the same for a row that Judge has tested, if both settings have tuned values: also sets the
// sign-flip p and the interval of the difference, if the permutation test with reselection has one.
void JudgeTuned(const ComparisonInput& input, const Measure& measure, const GridRow& grid_row,
                const GridRow& baseline, ComparisonRow* row);

// Adjusts the p values of all rows that can be tested as one family; returns its size.
size_t AdjustFamily(const std::vector<ComparisonRow*>& rows);

// Sets the seeds needed of rows with a spread. Frequencies of divergence can't be predicted from
// pairs.
void FindPower(size_t family, std::vector<ComparisonRow>* rows);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_
