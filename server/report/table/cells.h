// What a comparison's numbers look like in a table, one function a kind of cell.
#ifndef ABLATE_SERVER_REPORT_TABLE_CELLS_H_
#define ABLATE_SERVER_REPORT_TABLE_CELLS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"

namespace ablate::report {

// Of a baseline, which is not compared.
inline constexpr absl::string_view kNone = "\u2014";

// "2.437", with "[2.42, 2.45]" if `interval`; with decimals of its own, or scientific, where
// `decimals` would print it as 0; the reason where there is none.
std::string MeanCell(const ComparisonRow& row, Scale scale, int decimals, bool interval);

// "+.031 [+.024, +.038] (10 of 12)", "×1.42 [1.31, 1.55]": the count where pairs did not converge.
// kNone of a baseline. `decimals` are those of its column.
std::string DifferenceCell(const ComparisonRow& row, Scale scale, int decimals = -1);

// ".031", "<.001", "≈.012" if not `exact`; "" of what is exploratory or has not ended,
// kNone of a baseline.
std::string PCell(const ComparisonRow& row, const Number& p, bool exact = true);

// ".031", "<.001".
std::string PNumber(double p);

// "10/12", "10/12, 1 tie"; kNone unless it is compared.
std::string WinsCell(const ComparisonRow& row);

// "0", "2/12".
std::string DivergedCell(const ComparisonRow& row);

// "25,968", "25,696 to 25,968", "".
std::string ParametersCell(const ComparisonRow& row);

// With two decimals and a sign where asked for; the reason where there is none, kNone of a
// baseline.
std::string PureNumberCell(const ComparisonRow& row, const Number& number, bool sign);

// Three significant digits, whole from a hundred on; "" where undefined.
std::string CostCell(const Number& number);

// What the rows are compared with: "pre", or the labels that all baselines share; "baseline" if
// they share none.
std::string BaselineName(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_CELLS_H_
