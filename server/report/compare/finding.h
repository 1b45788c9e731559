// Puts the result of a row into words. A finding is made once; terminal, page and messages lay it
// out. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_FINDING_H_
#define ABLATE_SERVER_REPORT_COMPARE_FINDING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/factorial.h"

namespace ablate::report {

// A grade, or the reason why there is none, in words: "“post” leans worse than “pre”", "3 lean
// worse", "Leans higher by 0.031".
struct Words {
  absl::string_view one, many;  // verbs: "is probably ", "are probably "
  absl::string_view hedge;      // before a size: "probably "; empty if not needed
  absl::string_view what;       // "worse", "inconclusive", "too few pairs for a verdict"
  absl::string_view against;    // "than", "to", "with", "against"
};

// Number of seeds, or sequences, with which an undecided row would be established with kPower, if
// mean and spread stay as they are, and its range. Without a spread: the least number, and no
// range. 0: decided, not predictable (the facts have the reason), or more than kMaxSeeds.
struct SeedsToDecide {
  size_t seeds = 0, low = 0, high = 0;
};

struct Finding {
  size_t row = 0;   // index in Comparison::rows; 0 for an effect
  std::string who;  // “post”; for an effect "off against on"
  Decision decision;
  Words words;
  std::string size;  // "higher by 0.042" if its difference has a direction
  std::string lead;  // "Probably higher by 0.042", "Worse:", "Inconclusive:"
  // The text after the size, or after the lead if there is none: "[0.037, 0.046], 1.7 % of “pre”;
  // better on 8 of 8 seeds".
  std::string evidence;
  // "at lr 0.004", "p = 0.016 (Holm-adjusted for 2 comparisons; 8 pairs allow no smaller p)", the
  // effect of more seeds.
  std::vector<std::string> facts;
  // For a list of findings: "higher by 0.042 [0.037, 0.046]", "p = 0.016", "about 120 seeds
  // needed".
  std::vector<std::string> brief;
  // The difference at the shared tuned values of Comparison::reference, and how much of it is due
  // to them: "higher by 0.29 [0.28, 0.30] (tuning the lr removes most of it)". Empty if nothing is
  // tuned, or if it can't be compared.
  std::string shared;
  SeedsToDecide seeds;
};

// Returns the finding about `comparison.rows[row]`, which is compared with a baseline. An
// inconclusive row is never called equal.
Finding FindingOf(const Comparison& comparison, size_t row);

// Returns the findings of all compared rows, in the rows' order.
std::vector<Finding> FindingsOf(const Comparison& comparison);

// Returns the finding about an effect of crossed axes, adjusted over `family` effects: established
// or inconclusive; an interaction is neither better nor worse. Its decision has only grade and
// direction.
Finding EffectFinding(const Comparison& comparison, const Effect& effect, size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_FINDING_H_
