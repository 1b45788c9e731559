// Computes the effects of crossed axes: main effects of each axis, averaged over the others, and
// interactions of two axes. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_FACTORIAL_H_
#define ABLATE_SERVER_REPORT_COMPARE_FACTORIAL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/paired.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

struct Comparison;

// A setting of an axis, compared with the axis's baseline.
struct Level {
  std::string axis, label, baseline;
};

// A main effect or an interaction. For ratios it is of natural logarithms: an interaction is then a
// ratio of ratios.
struct Effect {
  // One level: a main effect, the value at the setting minus that at the baseline, averaged over
  // the other axes' combinations. Two levels: an interaction, the first one's effect at the second
  // one's setting minus that at its baseline, averaged over the combinations of the remaining axes.
  std::vector<Level> levels;
  // Number of combinations of other axes in the mean: those for which the grid has all cells, each
  // with a converged run on some seed.
  size_t combinations = 0;
  PairedStatistics difference{};  // by seed, over the seeds on which all of its runs converged
  // Adjusted over the main effects, or over the interactions: two families (Holm 1979).
  Number p_holm{};
};

inline constexpr size_t kMaxInteractions = 200;

struct Factorial {
  std::vector<Effect> main, interactions;
};

// Returns the effects. None if there are fewer than two row axes, or several baselines, or if rows
// have no verdict (withheld). With tuned values there are differences and t intervals, but no p,
// which would need reselection. An effect without a combination in the grid is left out.
// Interactions are of every two axes, both in the rows' order; none if there would be more than
// kMaxInteractions.
Factorial FindFactorial(const Comparison& comparison);

// Returns "post", "residual false"; for an interaction "post × residual false".
std::string EffectName(const Effect& effect);

// Returns a table's name of the effect: "post against pre"; for an interaction EffectName.
std::string EffectText(const Effect& effect);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_FACTORIAL_H_
