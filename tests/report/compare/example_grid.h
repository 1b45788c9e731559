// Makes small grids to compare, written as tables.
#ifndef ABLATE_TESTS_REPORT_COMPARE_EXAMPLE_GRID_H_
#define ABLATE_TESTS_REPORT_COMPARE_EXAMPLE_GRID_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/verdict.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {

inline constexpr double kDivergedRun = std::numeric_limits<double>::quiet_NaN();

// Returns a run that ended with `value`; diverged if it is NaN.
inline Cell MakeCell(std::vector<std::string> labels, uint32_t seed, double value) {
  Cell cell;
  cell.labels = std::move(labels);
  cell.seed = seed;
  cell.outcome = std::isnan(value) ? RunOutcome::kDiverged : RunOutcome::kDone;
  if (!std::isnan(value)) cell.value = value;
  return cell;
}

inline Axis MakeAxis(std::string name, std::vector<std::string> labels, bool tuned = false,
                     std::vector<double> values = {}) {
  Axis axis;
  axis.name = std::move(name);
  axis.labels = std::move(labels);
  axis.tuned = tuned;
  axis.values = std::move(values);
  return axis;
}

// Return what is said about a comparison whose findings aren't needed otherwise.
inline Verdict RowVerdict(const Comparison& comparison, size_t row) {
  return RowVerdict(comparison, FindingOf(comparison, row));
}
inline Verdict OverallVerdict(const Comparison& comparison) {
  return OverallVerdict(comparison, FindingsOf(comparison));
}
inline std::string MatchedNote(const Comparison& comparison) {
  return MatchedNote(comparison, FindingsOf(comparison));
}

// One axis "norm"; the first setting is the baseline; values by seed 0, 1, ….
inline ComparisonInput OneAxis(
    const std::vector<std::pair<std::string, std::vector<double>>>& settings) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {})};
  for (const auto& [label, values] : settings) {
    input.axes[0].labels.push_back(label);
    for (size_t seed = 0; seed < values.size(); ++seed) {
      input.cells.push_back(MakeCell({label}, static_cast<uint32_t>(seed), values[seed]));
    }
  }
  return input;
}

// Crossed axes: norm pre or post, with a residual or plain; values by seed 0, 1, ….
inline ComparisonInput NormByResidual(
    const std::function<std::vector<double>(bool post, bool plain)>& values) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"pre", "post"}), MakeAxis("residual", {"true", "false"})};
  for (const bool post : {false, true}) {
    for (const bool plain : {false, true}) {
      uint32_t seed = 0;
      for (const double value : values(post, plain)) {
        input.cells.push_back(
            MakeCell({post ? "post" : "pre", plain ? "false" : "true"}, seed++, value));
      }
    }
  }
  return input;
}

// Returns losses of settings "a" and "b" at two learning rates, 0.4 higher for "b". The standard
// deviation of "b" is `ratio` times that of "a". With `switches` the setting "b" selects 0.004,
// except on seed 0, for which both values are equal on the other seeds.
inline ComparisonInput UnequalNoise(double ratio, bool switches, size_t seeds = 8) {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"a", "b"}),
                MakeAxis("lr", {"0.002", "0.004"}, true, {.002, .004})};
  const std::vector<double> noise = OracleR(83, seeds, 0, .01);
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    const double odd = switches && seed > 0 ? 0 : .001;
    input.cells.push_back(MakeCell({"a", "0.002"}, seed, 2 + noise[seed]));
    input.cells.push_back(MakeCell({"a", "0.004"}, seed, 3 + noise[seed]));
    input.cells.push_back(MakeCell({"b", "0.002"}, seed, 2.4 + ratio * noise[seed]));
    input.cells.push_back(MakeCell({"b", "0.004"}, seed, 2.4 + ratio * noise[seed] - odd));
  }
  return input;
}

// Returns losses of three optimizers, each with learning rates of its own, over eight seeds: adamw
// is best at 0.001 (2), lion at 0.003 (2.2) and sgd at 0.3 (2.4). All have 0.1 times the seed; half
// of the seeds are 0.01 higher, and half lower for sgd; 0.02 for lion.
inline ComparisonInput OptimizersGrid() {
  struct Mean {
    const char *optimizer, *lr;
    double loss;
  };
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {
      MakeAxis("optimizer", {"adamw", "sgd", "lion"}),
      MakeAxis("lr", {"0.001", "0.01", "0.1", "0.3", "0.003"}, true, {.001, .01, .1, .3, .003})};
  for (const auto& [optimizer, lr, loss] :
       {Mean{"adamw", "0.001", 2}, Mean{"adamw", "0.01", 2.1}, Mean{"sgd", "0.1", 2.5},
        Mean{"sgd", "0.3", 2.4}, Mean{"lion", "0.003", 2.2}, Mean{"lion", "0.01", 2.3}}) {
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const std::string name = optimizer;
      const double noise = name == "sgd"    ? (seed % 2 == 0 ? .01 : -.01)
                           : name == "lion" ? (seed % 4 < 2 ? .02 : -.02)
                                            : 0;
      Cell& cell = input.cells.emplace_back(MakeCell({name, lr}, seed, loss + .1 * seed + noise));
      cell.changed = {{"training.learning_rate", lr}};
      if (name != "adamw") cell.changed["training.optimizer"] = name;
    }
  }
  return input;
}

// Makes the cell's run unfinished.
inline void Unfinish(Cell* cell) {
  cell->outcome = RunOutcome::kUnfinished;
  cell->value.reset();
}

// Returns base + shift, with `spread` alternately added and subtracted.
inline std::vector<double> Shifted(const std::vector<double>& base, double shift,
                                   double spread = 0) {
  std::vector<double> values = base;
  for (size_t i = 0; i < values.size(); ++i) values[i] += shift + (i % 2 == 0 ? spread : -spread);
  return values;
}

// Returns losses of n seeds, near 2.4.
inline std::vector<double> Base(size_t n) { return OracleR(83, n, 2.4, .1); }

// Makes the runs of `count` seeds from the first-th on diverge.
inline void Diverge(std::vector<double>* values, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) (*values)[i] = kDivergedRun;
}

// Returns accuracies of settings "a" and "b" at two learning rates, on 10 seeds. At 0.004 all are
// 1, and "b" is worse at 0.002. "a" has `odd` there on seed 3 and 1 on the others, so that 0.002
// ties with 0.004 without seed 3, and is selected for it.
inline ComparisonInput AtCeiling(double odd) {
  ComparisonInput input;
  input.key = "eval/accuracy";
  input.better = Better::kHigher;
  input.axes = {MakeAxis("norm", {"a", "b"}),
                MakeAxis("lr", {"0.002", "0.004"}, true, {.002, .004})};
  for (const std::string norm : {"a", "b"}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      const double low = norm == "b" ? .6 + .01 * seed : seed == 3 ? odd : 1;
      input.cells.push_back(MakeCell({norm, "0.002"}, seed, low));
      input.cells.push_back(MakeCell({norm, "0.004"}, seed, 1));
    }
  }
  return input;
}

// Returns the oracle's grid: R(91, [3, 2, 6]) + 2.5 over lr, setting, seed.
inline ComparisonInput OracleGrid() {
  ComparisonInput input;
  input.key = "eval/loss";
  input.axes = {MakeAxis("norm", {"layer", "rms"}),
                MakeAxis("lr", {"0.1", "0.2", "0.4"}, true, {.1, .2, .4})};
  const std::vector<double> losses = OracleR(91, 36, 2.5, 1);
  for (size_t i = 0; i < losses.size(); ++i) {
    input.cells.push_back(MakeCell({input.axes[0].labels[i / 6 % 2], input.axes[1].labels[i / 12]},
                                   static_cast<uint32_t>(i % 6), losses[i]));
  }
  return input;
}

}  // namespace ablate::report

#endif  // ABLATE_TESTS_REPORT_COMPARE_EXAMPLE_GRID_H_
