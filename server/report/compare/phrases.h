// Writes the phrases about a comparison that findings, tables, figures and warnings share. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_
#define ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"

namespace ablate::report {

// Returns the metric: "Held-out loss (nats per token, lower is better)", "Gradient norm (compared
// as ratios, neither direction is better)".
std::string MeasuredIn(const Comparison& comparison);

// Returns "seed", "sequence".
absl::string_view UnitName(Unit unit);

// Returns a note on the scope of a comparison by sequence: its intervals and tests are about these
// models. "" for seeds, or if no row has pairs.
std::string UnitNote(const Comparison& comparison);

// Returns ", each at its selected lr", or whose selection that was; "" if nothing is tuned.
std::string TunedText(const Comparison& comparison);

// Returns "lr 0.004", or the number of a row's seeds for each choice: "lr 0.002 (6/12), 0.004
// (6/12)". Without `axes` the values only. "" if nothing is tuned.
std::string ChosenText(const ComparisonRow& row, const std::vector<std::string>& axes = {});

// Returns "“post” varies 3.1 times as much as “pre”", the one with the larger standard deviation
// first.
std::string NoisierText(const ComparisonRow& row, const ComparisonRow& baseline);

// Returns "Holm-adjusted for 2 comparisons"; "" for one row.
std::string FamilyText(size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_
