// What a comparison says, as sentences made from the decisions on its rows. Pure functions, safe
// from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
#define ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"

namespace ablate::report {

struct Verdict {
  VerdictOutcome outcome = VerdictOutcome::kInconclusive;
  Grade grade = Grade::kInconclusive;  // overall the least of the rows'
  bool equivalent = false;             // overall of all rows
  std::string text;                    // one sentence
  // Seeds with which a row that is not decided would be established with kPower, were mean and
  // spread to stay as they are, and the ends of what that may be; without a spread what it takes at
  // least, and no ends; overall the most that a row needs. 0: decided, not to be foretold (the
  // sentence says why), or more than kMaxSeeds.
  size_t seeds_to_decide = 0, seeds_low = 0, seeds_high = 0;
};

// About `comparison.rows[row]`, which is compared with a baseline. An inconclusive row is never
// called equal.
Verdict RowVerdict(const Comparison& comparison, size_t row);

// About all rows that are compared; preliminary while any run of the comparison has not ended.
Verdict OverallVerdict(const Comparison& comparison);

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

// What the same rows would have said at one shared combination of tuned values (the reference
// block), and whose difference is mostly due to it, of rows that have a verdict; "" where nothing
// is tuned.
std::string MatchedNote(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_VERDICT_H_
