// Words about a comparison that findings, tables, figures and warnings share. Pure functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_
#define ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/comparison.h"

namespace ablate::report {

// "Held-out loss (nats per token, lower is better)", "Gradient norm (compared as ratios, neither
// direction is better)": what is measured.
std::string MeasuredIn(const Comparison& comparison);

// ", each at its selected lr", or whose choice that was; "" where nothing is tuned.
std::string TunedText(const Comparison& comparison);

// "lr .004", or how many of a row's seeds chose which: "lr .002 (6/12), .004 (6/12)". Without
// `axes` the values alone. "" where nothing is tuned.
std::string ChosenText(const ComparisonRow& row, const std::vector<std::string>& axes = {});

// "Holm-adjusted for 2 comparisons"; "" of one.
std::string FamilyText(size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_
