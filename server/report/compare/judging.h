// The tests that judge the rows of a comparison: each row's own, the family's, and what more seeds
// would do. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_
#define ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/grid.h"

namespace ablate::report {

// How rows are compared. The margin is on the scale: of ratios its logarithm.
struct Measure {
  Better better = Better::kLower;
  Scale scale = Scale::kDifference;
  std::optional<double> margin;
};

// What the input asks for, as far as its values allow.
Measure MeasureOf(const ComparisonInput& input);

// Fills in p, by_wins and p_equivalence of a row whose pairs and difference are there, as where
// nothing is tuned.
void Judge(const Measure& measure, ComparisonRow* row);

// The same, of a row that was judged so, where both settings chose among tuned values: also the
// sign-flip p and the interval of the difference, where the test that chooses again has one.
void JudgeTuned(const ComparisonInput& input, const Measure& measure, const GridRow& grid_row,
                const GridRow& baseline, ComparisonRow* row);

// Adjusts the p values of all rows that can be judged as one family; returns its size.
size_t AdjustFamily(const std::vector<ComparisonRow*>& rows);

// Says of rows with a spread what their difference would take. How often runs diverge can't be
// foretold from pairs.
void FindPower(size_t family, std::vector<ComparisonRow>* rows);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_
