// What a comparison says: sentences and notes, laid out from the findings on its rows. Pure
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
  Grade grade = Grade::kInconclusive;  // overall the least of the rows'
  bool equivalent = false;             // overall of all rows
  std::string text;                    // one sentence
  SeedsToDecide seeds;                 // overall the most that a row needs
};

// About `comparison.rows[row]`, which is compared with a baseline: "“post” is worse than “pre” in
// held-out loss: higher by .030 [.023, .037], 1.3 % of “pre”; worse on 12 of 12 seeds; p < .001
// (12 pairs allow no smaller p)."
Verdict RowVerdict(const Comparison& comparison, size_t row);

// About all rows that are compared; preliminary while any run of the comparison has not ended.
Verdict OverallVerdict(const Comparison& comparison);

// "3 are better (“a”, “b” and “c”), 1 leans worse (“d”) and 16 are inconclusive (“e”, “f”, “g” and
// 13 more)", the best established first.
std::string CountsText(const std::vector<Finding>& findings);

// "preliminary, 68 of 96 runs"; "" where all runs have ended.
std::string PreliminaryText(const Comparison& comparison);

// What to know of baselines that are chosen by what is scored: rows are compared within each
// setting of some axes. "" where there are none.
std::string WithinNote(const Comparison& comparison);

// What diverged at tuned values that no row chose: "9 runs at values that are not chosen diverged";
// "" where nothing did, or where chosen runs diverged, too, which rows say.
std::string DivergedNote(const Comparison& comparison);

// What to know of means where a baseline has more converged runs than a row has pairs; else "".
std::string MeansNote(const Comparison& comparison);

// "all at lr .01: ", which Finding::shared follows; the comparison has a reference.
std::string SharedPlace(const Comparison& comparison);

// Every row's difference there, and how much of it is due to the tuned values; "" if nothing is
// tuned.
std::string MatchedNote(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
