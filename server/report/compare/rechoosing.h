// Two settings compared by flipping signs where each is given its own value of tuned axes: under
// every pattern of signs the columns of the flipped seeds change hands and both settings choose
// again. A test that flips the differences at the values once chosen forgets that choosing lowered
// them, and rejects up to four times too often. Patterns are compared by Student's |t|: where best
// values differ, mixed patterns lead to values at which the settings are far apart in both
// directions, which makes for large means and small t. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_RECHOOSING_H_
#define ABLATE_SERVER_REPORT_COMPARE_RECHOOSING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/report/compare/selection.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// The trials of two settings over all candidates of either, in the grid's order, and the same
// seeds: [candidates, seeds], row-major. Where one of the two was not tried there is no result; on
// no seed if it was not to be tried there, and then its columns are never given that candidate,
// whoever has them.
struct TunedPair {
  size_t candidates = 0, seeds = 0;
  std::vector<Trial> setting, baseline;
  // What is chosen by, where that is something else; empty otherwise.
  std::vector<Trial> setting_choices = {}, baseline_choices = {};
  Better choice_better = Better::kLower;
};

struct RechoosingOptions {
  size_t exact_up_to = 16;  // seeds that can be flipped, at most 62; beyond, patterns are drawn
  std::optional<double> margin;  // what p_equivalence is asked for
};

struct RechoosingResult {
  // Two-sided: the share of patterns that are at least as far from 0 as what was seen. Undefined:
  // kTooFewPairs (below 2), kNonFinite.
  Number p_difference;  // by Studentized differences where both converged
  Number p_wins;        // by wins less losses; a diverged run loses against one that converged
  bool exact = false;   // all patterns counted; else (c+1)/(draws+1)
  // Half the larger p of the same test of the difference shifted by ±margin; 1 where it is beyond.
  // kNotRecorded without a margin, and p_difference's reasons.
  Number p_equivalence;
  // From the least to the largest δ by which the setting's values may be shifted before the test of
  // the difference rejects it at kAlpha; some between may be rejected. The choices under a pattern
  // are those of δ = 0, which a shift can change only where a candidate's runs diverged or are
  // missing. Undefined: kTooFewPairs where no δ is ever rejected (below 6 pairs), kZeroVariance
  // where all differences are equal, and p_difference's reasons.
  Interval interval;
};

// Exact means that of all patterns, so that under no difference, whatever the noise and however
// seeds are alike, p <= a in at most a share a of experiments. A seed can be flipped if both have a
// result on it; the others take part in choosing only. Time O(patterns × candidates × seeds).
RechoosingResult TestByRechoosing(const TunedPair& pair, Better better,
                                  const RechoosingOptions& options = {});

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_RECHOOSING_H_
