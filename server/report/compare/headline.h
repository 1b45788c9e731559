// What a hurried reader takes from one row of a comparison: a few words, and the facts behind them.
// Pure functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_HEADLINE_H_
#define ABLATE_SERVER_REPORT_COMPARE_HEADLINE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"

namespace ablate::report {

struct Headline {
  Decision decision;
  std::string lead;  // "Lower by .042", "Inconclusive:", "No verdict yet:"
  // What it rests on: "[.037, .046], 1.7 % of “pre”; better on 8 of 8 seeds".
  std::string rest;
  // "at lr .004", "p = .016 with Holm over 2 rows, the least that 8 pairs allow", what one shared
  // rate would have said, what more seeds would do.
  std::vector<std::string> facts;
};

// Of `comparison.rows[row]`, which is compared with a baseline.
Headline HeadlineOf(const Comparison& comparison, size_t row);

// "Held-out loss (nats per token, lower is better)", "Gradient norm (compared as ratios, neither
// direction is better)": what is measured.
std::string MeasuredIn(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_HEADLINE_H_
