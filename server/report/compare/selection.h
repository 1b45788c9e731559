// The value of a tuned axis that a setting is given on each seed, chosen on its other seeds.
#ifndef ABLATE_SERVER_REPORT_COMPARE_SELECTION_H_
#define ABLATE_SERVER_REPORT_COMPARE_SELECTION_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace ablate::report {

// Which values of a metric are better. Of kNeither, such as a rank or a norm, choices and counts
// are made as if lower were, and nothing is called better or worse.
enum class Better { kLower, kHigher, kNeither };

// One run as a choice sees it.
struct Trial {
  enum class State {
    kNone,       // no result (yet): left out
    kConverged,  // `value` is finite
    kDiverged,   // as bad as can be
  };
  State state = State::kNone;
  double value = 0;
};

// What a candidate's results over some seeds come to; `mean` is of the losses of those that
// converged (lower is better, whatever the metric), and not read where there are none.
struct Standing {
  double mean = 0;
  size_t converged = 0, diverged = 0;

  bool empty() const { return converged + diverged == 0; }
};

// Whether `a` is strictly better than `b`. A mean with a diverged run in it is the worst there is,
// so fewer of them decide before the means of the rest do. Means within kTie are equal.
bool Beats(const Standing& a, const Standing& b);

// For each seed the candidate that was chosen without looking at it.
struct Selection {
  std::vector<std::optional<size_t>> picks;  // per seed; none where no candidate has a result
  std::vector<size_t> counts;  // per candidate, seeds that picked it and have its result
  // Seeds whose candidates have results on that seed alone, so that the choice was made on the run
  // it is judged by.
  size_t same_seed = 0;
};

// `trials` is [candidates, seeds], row-major, candidates in the grid's order (several tuned axes:
// their combinations). A candidate is judged by its mean over the other seeds that have a result.
// One diverged run makes that mean the worst there is; where every candidate has one, the fewest
// diverged win, then the best mean of the rest. The first of equals (kTie) is taken. Pure, safe
// from any thread; time O(candidates × seeds).
Selection LeaveOneSeedOut(absl::Span<const Trial> trials, size_t candidates, size_t seeds,
                          Better better);

// How often a numeric axis was left at the end of what was tried.
struct EdgePicks {
  double lowest = 0, highest = 0;        // values tried
  size_t at_lowest = 0, at_highest = 0;  // seeds that picked them
};

// `values` are the axis's by candidate. None if fewer than three distinct values were tried: then
// each value, or each but one, is an end.
std::optional<EdgePicks> CountEdgePicks(absl::Span<const double> values,
                                        const Selection& selection);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_SELECTION_H_
