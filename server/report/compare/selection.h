// Selects the values of tuned axes by leave-one-seed-out selection: the value for a setting and
// seed is selected on the setting's other seeds.
#ifndef ABLATE_SERVER_REPORT_COMPARE_SELECTION_H_
#define ABLATE_SERVER_REPORT_COMPARE_SELECTION_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace ablate::report {

// The direction in which values of a metric are better. For kNeither, such as a rank or a norm,
// selections and counts assume lower, and nothing is called better or worse.
enum class Better { kLower, kHigher, kNeither };

// One run's result for the selection.
struct Trial {
  enum class State {
    kNone,       // no result (yet): ignored
    kConverged,  // `value` is finite
    kDiverged,   // worse than any value
  };
  State state = State::kNone;
  double value = 0;
};

// A candidate's results over some seeds; `mean` is of the losses of those that converged (lower is
// better, whatever the metric), and not read if there are none.
struct Standing {
  double mean = 0;
  size_t converged = 0, diverged = 0;

  bool empty() const { return converged + diverged == 0; }
};

// Returns true if `a` is strictly better than `b`. A mean with a diverged run is the worst there
// is, so fewer of them decide before the means of the rest do. Means within kTie are equal.
bool Beats(const Standing& a, const Standing& b);

// For each seed the candidate that was selected without using that seed.
struct Selection {
  std::vector<std::optional<size_t>> picks;  // per seed; none if no candidate has a result
  std::vector<size_t> counts;  // per candidate, seeds that picked it and have its result
  // Seeds whose candidates have results on that seed only, so that the selection used the run that
  // it is tested on.
  size_t same_seed = 0;
};

// Selects for each seed. `trials` is [candidates, seeds], row-major, candidates in the grid's order
// (several tuned axes: their combinations). A candidate is scored by its mean over the other seeds
// that have a result. One diverged run makes that mean the worst there is; if every candidate has
// one, the fewest diverged win, then the best mean of the rest. The first of equals (kTie) is
// taken. Pure, safe from any thread; time O(candidates × seeds).
Selection LeaveOneSeedOut(absl::Span<const Trial> trials, size_t candidates, size_t seeds,
                          Better better);

// How often the selection on a numeric axis was at an end of the tried values.
struct EdgePicks {
  double lowest = 0, highest = 0;        // values tried
  size_t at_lowest = 0, at_highest = 0;  // seeds that picked them
};

// Counts the selections at the ends; `values` are the axis's by candidate. Nothing if fewer than
// three distinct values were tried, because then all values, or all except one, are ends.
std::optional<EdgePicks> CountEdgePicks(absl::Span<const double> values,
                                        const Selection& selection);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_SELECTION_H_
