// Writes a comparison's verdict: sentences and notes, made from the findings on its rows. Pure
// functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
#define ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_

#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/finding.h"

namespace ablate::report {

struct Verdict {
  VerdictOutcome outcome = VerdictOutcome::kInconclusive;
  Grade grade = Grade::kInconclusive;  // overall the lowest of the rows'
  bool equivalent = false;             // overall: true for all rows
  std::string text;                    // one sentence
  SeedsToDecide seeds;                 // overall the largest need of a row
};

// In the following, `findings` are FindingsOf(comparison), and `finding` is one of these.

// Returns the verdict on a row: "“post” is worse than “pre” in held-out loss: higher by 0.030
// [0.023, 0.037], 1.3 % of “pre”; worse on 12 of 12 seeds; p < 0.001 (12 pairs allow no smaller
// p)."
Verdict RowVerdict(const Comparison& comparison, const Finding& finding);

// Returns the verdict on all compared rows; preliminary until every run of the comparison has
// ended.
Verdict OverallVerdict(const Comparison& comparison, const std::vector<Finding>& findings);

// Returns "3 are better (“a”, “b” and “c”), 1 leans worse (“d”) and 16 are inconclusive (“e”, “f”,
// “g” and 13 more)", the best established first.
std::string CountsText(const std::vector<Finding>& findings);

// Returns "preliminary, 68 of 96 runs"; "" if all runs have ended.
std::string PreliminaryText(const Comparison& comparison);

// Returns a note if baselines are chosen by evaluation data, so that rows are compared within each
// setting of some axes; otherwise "".
std::string WithinNote(const Comparison& comparison);

// Returns a note about divergence at tuned values that no row selected: "9 runs at values that are
// not chosen diverged". "" if none diverged, or if selected runs diverged, too, which rows report.
std::string DivergedNote(const Comparison& comparison);

// Returns a note about means if a baseline has more converged runs than a row has pairs; otherwise
// "".
std::string MeansNote(const Comparison& comparison);

// Returns "all at lr 0.01: ", the beginning for SharedDifference; the comparison has a reference.
std::string SharedPlace(const Comparison& comparison);

// Returns Finding::shared, and the number of seeds behind it if some planned ones have no converged
// pair there: "+0.104 (over 1 of 8 seeds)"; "diverged on 8 of 8 seeds". "" without either.
std::string SharedDifference(const Comparison& comparison, const Finding& finding);

// Returns every row's difference at the shared values, and how much of it is due to the tuned
// values; "" if nothing is tuned.
std::string MatchedNote(const Comparison& comparison, const std::vector<Finding>& findings);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
