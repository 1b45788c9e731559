// Tests the rows of a comparison: each row's own test, the family's adjustment, and the power of
// more seeds. Pure functions, safe from any thread.
//
// Compare calls Judge, JudgeTuned, AdjustFamily and FindPower, in this order. From the tested rows
// Decide (decision.h) makes the grade, FindingOf (finding.h) the words, and RowVerdict (verdict.h)
// the sentences.
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
  Unit unit = Unit::kSeed;
};

// Returns the measure that the input requests; differences without a margin if it requests ratios
// but a value isn't above 0.
Measure MeasureOf(const ComparisonInput& input);

// Sets p, by_wins and p_equivalence of a row whose pairs and difference are set, without tuning.
void Judge(const Measure& measure, ComparisonRow* row);

// For a row that Judge has tested and whose settings have tuned values: moves p to
// p_selected, and replaces p, exact, the sign-flip p and p_equivalence by the results of the
// permutation test with reselection, and the interval of the difference if that test has one.
// Undefined numbers stay undefined.
void JudgeTuned(const ComparisonInput& input, const Measure& measure, const GridRow& grid_row,
                const GridRow& baseline, ComparisonRow* row);

// Adjusts the p values of all rows that can be tested as one family; returns its size.
size_t AdjustFamily(const std::vector<ComparisonRow*>& rows);

// Sets the seeds needed of rows with a spread. Frequencies of divergence can't be predicted from
// pairs.
void FindPower(size_t family, std::vector<ComparisonRow>* rows);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_JUDGING_H_
