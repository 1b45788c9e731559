// Reduces curves of a setting's seeds for a figure: mean, interval, thinned lines. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVES_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/report/compare/scale.h"

namespace ablate::figure {

// One run's points of one metric, as stored.
struct SeedCurve {
  uint32_t seed = 0;
  std::vector<uint32_t> steps;  // ascending
  std::vector<double> values;   // one per step; may be non-finite
  bool diverged = false;
  bool cut = false;  // later points were left out
};

// A row of the comparison and its runs' curves.
struct SettingCurves {
  std::string label;
  size_t style = 0;  // index of its colour (StyleOf)
  std::vector<SeedCurve> seeds;
};

// Returns, seed by seed, `row` minus `baseline` on the scale, at their common steps, for seeds on
// which both converged; label and style are the row's. Not finite if a value has no logarithm.
SettingCurves PairedCurves(report::Scale scale, const SettingCurves& row,
                           const SettingCurves& baseline);

// A curve with few enough points to draw.
struct ThinLine {
  uint32_t seed = 0;
  bool diverged = false;
  bool cut = false;
  std::vector<double> x, y;
};

// Mean and interval are over the converged seeds, at steps at which all of them have a point.
struct ReducedCurve {
  std::vector<double> x, mean, low, high;  // low and high are NaN without an interval
  std::vector<ThinLine> seeds;             // converged and diverged ones
  size_t converged = 0, diverged = 0;
  uint32_t smoothed = 1;                   // steps per trailing mean
  uint32_t first_step = 0, last_step = 0;  // over all its seeds
};

struct ReducedSetting {
  std::string label;
  size_t style = 0;
  std::vector<ReducedCurve> panels;  // one per panel
};

inline constexpr size_t kMaxSeedLines = 48;    // in one panel; with more, none is drawn
inline constexpr size_t kMaxPoints = 1000;     // of a mean
inline constexpr size_t kMaxSeedPoints = 300;  // of a thin line

// Returns indices of at most about `max_points` points: each bucket keeps its first, smallest,
// largest, last and last finite, which is the end of a diverged run, and a break if it has one.
std::vector<size_t> ThinIndices(const std::vector<double>& values, size_t max_points);

// Returns the points of a trailing mean over `smooth` steps on this curve: at most a fifth of the
// curve.
size_t SmoothingPoints(const SeedCurve& curve, uint32_t smooth);

// Return the curve's trailing mean over `points`, its cumulative mean, and its part within steps.
SeedCurve Smoothed(const SeedCurve& curve, size_t points);
SeedCurve Accumulated(const SeedCurve& curve);
SeedCurve Between(const SeedCurve& curve, uint32_t first_step, uint32_t last_step);

// Computes statistics over all points of all seeds, then thins. `seed_lines` keeps lines of the
// converged seeds, too (up to kMaxSeedLines of them); those of diverged ones are always kept. With
// `log` means and intervals are as AddMean's.
ReducedCurve ReduceSeeds(const std::vector<SeedCurve>& seeds, bool seed_lines, bool log = false);

// Adds the mean of several seeds' values at x, and its t interval: with `log` the geometric mean
// and an interval of the logarithms. NaN if a value can't be in them; no interval for a single
// value, or if no axis could show it.
void AddMean(double x, const std::vector<double>& values, bool log, ReducedCurve* curve);

// Returns the same curve for a small panel: at most about `max_points` points of the mean and of
// each line.
ReducedCurve Thinned(const ReducedCurve& reduced, size_t max_points);

// Reduces the seeds' trailing means over `smooth` steps, within [first_step, last_step].
ReducedCurve ReduceSmoothed(const std::vector<SeedCurve>& seeds, uint32_t smooth,
                            uint32_t first_step, uint32_t last_step, bool seed_lines,
                            bool log = false);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVES_H_
