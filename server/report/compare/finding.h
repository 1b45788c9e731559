// What a row of a comparison comes to, in words. A finding is made once; the terminal, the page and
// messages lay it out. Pure functions, safe from any thread.
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
// worse", "Leans higher by .031".
struct Words {
  absl::string_view one, many;  // verbs: "is probably ", "are probably "
  absl::string_view hedge;      // in front of a size: "probably "; empty if none is needed
  absl::string_view what;       // "worse", "inconclusive", "too few pairs for a verdict"
  absl::string_view against;    // "than", "to", "with", "against"
};

// Seeds with which a row that is not decided would be established with kPower, if mean and spread
// stay as they are, and the ends of what that may be. Without a spread: the least that it takes,
// and no ends. 0: decided, not to be foretold (the facts say why), or more than kMaxSeeds.
struct SeedsToDecide {
  size_t seeds = 0, low = 0, high = 0;
};

struct Finding {
  size_t row = 0;   // of Comparison::rows; 0 of an effect
  std::string who;  // “post”; of an effect "off against on"
  Decision decision;
  Words words;
  std::string size;  // "higher by .042" of one that has a direction by its difference
  std::string lead;  // "Probably higher by .042", "Worse:", "Inconclusive:"
  // What follows the size, or the lead of one without: "[.037, .046], 1.7 % of “pre”; better on 8
  // of 8 seeds".
  std::string evidence;
  // "at lr .004", "p = .016 (Holm-adjusted for 2 comparisons; 8 pairs allow no smaller p)", what
  // more seeds would do.
  std::vector<std::string> facts;
  // In a list of findings: "higher by .042 [.037, .046]", "p = .016", "about 120 seeds needed".
  std::vector<std::string> brief;
  // The difference at the shared tuned values of Comparison::reference, and how much of it is due
  // to them: "higher by .29 [.28, .30] (tuning the lr removes most of it)". Empty if nothing is
  // tuned, or if there is none that may be compared.
  std::string shared;
  SeedsToDecide seeds;
};

// Of `comparison.rows[row]`, which is compared with a baseline. An inconclusive row is never called
// equal.
Finding FindingOf(const Comparison& comparison, size_t row);

// Of every row that is compared, in the rows' order.
std::vector<Finding> FindingsOf(const Comparison& comparison);

// Of an effect of crossed axes, which `family` effects are adjusted over: established or
// inconclusive; of an interaction neither better nor worse. Its decision is a grade and a
// direction.
Finding EffectFinding(const Comparison& comparison, const Effect& effect, size_t family);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_FINDING_H_
