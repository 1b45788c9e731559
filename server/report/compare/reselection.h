// Permutation test with reselection: compares two settings with tuned values by flipping signs.
// Under every pattern of signs the two settings exchange their runs at all candidates on the
// flipped seeds, and both select again. A test that flips the differences at fixed selected values
// ignores that selection makes them depend on each other, and rejects up to four times too often.
// Patterns are compared by Student's |t|: if best values differ, mixed patterns select values at
// which the settings differ much in both directions, which gives large means and small t. Pure
// functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_RESELECTION_H_
#define ABLATE_SERVER_REPORT_COMPARE_RESELECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/report/compare/selection.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// The trials of two settings over all candidates of either, in the grid's order, and the same
// seeds: [candidates, seeds], row-major. A candidate that one setting was not tried at has no
// result there. If it has none on any seed, it isn't in that setting's grid, and no pattern selects
// it from that setting's runs, whichever side has them.
struct TunedPair {
  size_t candidates = 0, seeds = 0;
  std::vector<Trial> setting, baseline;
  // Trials of the selection metric, if that is another one; otherwise empty.
  std::vector<Trial> setting_choices = {}, baseline_choices = {};
  Better choice_better = Better::kLower;
};

struct ReselectionOptions {
  size_t exact_up_to = 16;  // seeds that can be flipped, at most 62; with more, patterns are drawn
  std::optional<double> margin;  // margin for p_equivalence
};

struct ReselectionResult {
  // Two-sided: the fraction of patterns that are at least as far from 0 as the observed one.
  // Undefined: kTooFewPairs (below 2), kNonFinite.
  Number p_difference;  // by Studentized differences of pairs in which both converged
  Number p_wins;        // by wins less losses; a diverged run loses against one that converged
  bool exact = false;   // all patterns counted; otherwise (c+1)/(draws+1)
  // Half the larger p of the same test of the difference shifted by ±margin; 1 if the difference is
  // beyond it. kNotRecorded without a margin, and p_difference's reasons.
  Number p_equivalence;
  // Interval by inversion of the test: the shifts δ of the setting's values around the mean that
  // the test of the difference does not reject at kAlpha. It may also keep shifts far away, beyond
  // rejected ones. Below 8 pairs the interval reaches to them. The selections under a pattern are
  // those of δ = 0; a shift can change them only if a candidate's runs diverged or are missing.
  // Undefined: kTooFewPairs if no δ is ever rejected (below 6 pairs), kZeroVariance if all
  // differences are equal, and p_difference's reasons.
  Interval interval;
};

// Runs the test. An exact p is over all patterns, so that under the null hypothesis, whatever the
// noise and however seeds are correlated, p <= a in at most a fraction a of experiments. A seed can
// be flipped if both have a result on it; the others take part in selection only, and n seeds that
// can be flipped allow no p below 2^(1−n). Time O(patterns × candidates × seeds).
ReselectionResult TestByReselection(const TunedPair& pair, Better better,
                                    const ReselectionOptions& options = {});

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_RESELECTION_H_
