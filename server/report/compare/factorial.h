// Crossed axes: what one axis does on average over the others, and whether what it does depends on
// another one. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_FACTORIAL_H_
#define ABLATE_SERVER_REPORT_COMPARE_FACTORIAL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/paired.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

struct Comparison;

// A setting of an axis against the axis's baseline.
struct Level {
  std::string axis, label, baseline;
};

// Where ratios are compared, an effect is of natural logarithms: an interaction a ratio of ratios.
struct Effect {
  // One: a main effect, the mean over the other axes' combinations of the value at the setting less
  // that at the baseline. Two: an interaction, the first one's effect at the second one's setting
  // less that at its baseline, a mean over the combinations of the axes that are left.
  std::vector<Level> levels;
  // Combinations of other axes that it is a mean over: those at which the grid has all that it is
  // made of, and all of those have a converged run on some seed.
  size_t combinations = 0;
  PairedStatistics difference{};  // by seed, over those on which all of its runs converged
  // Adjusted over the main effects, or over the interactions: each a family of its own (Holm 1979).
  Number p_holm{};
};

inline constexpr size_t kMaxInteractions = 200;

struct Factorial {
  std::vector<Effect> main, interactions;
};

// None where there are fewer than two row axes, or several baselines, or where rows have no verdict
// (withheld). Where values are tuned there are differences and t intervals, but no p: it would take
// choosing again. Interactions of every two axes, both in the rows' order; none where
// there would be more than kMaxInteractions.
Factorial FindFactorial(const Comparison& comparison);

// "post", "residual false"; of an interaction "post × residual false".
std::string EffectName(const Effect& effect);

// "post against pre", and of an interaction its name: what a table calls it.
std::string EffectText(const Effect& effect);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_FACTORIAL_H_
