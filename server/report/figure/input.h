// What figures are drawn from.
#ifndef ABLATE_SERVER_REPORT_FIGURE_INPUT_H_
#define ABLATE_SERVER_REPORT_FIGURE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/report/comparison.h"
#include "server/report/figure/description.h"
#include "server/report/figure/track.h"
#include "server/report/window_summary.h"

namespace ablate::figure {

// How curves are reduced, in steps.
struct CurveOptions {
  uint32_t smooth = 20;                          // of the trailing mean
  uint32_t first_steps = 100, last_steps = 200;  // of the kind `windows`
};

// In the first window at most this many steps are averaged: there the curve falls within a few, and
// an average over more would hide it.
inline constexpr uint32_t kFirstSmooth = 5;

struct Input {
  const report::Comparison* comparison = nullptr;  // never null
  // Axes of the grid that it compares; read by `sensitivity`.
  std::vector<report::Axis> axes;
  std::string key;  // of the curves
  CurveOptions curves;
  std::vector<SettingTracks> settings;  // of kinds that draw curves: reduced by the kind
  // Of the kind `summary`; null or without windows: the comparison's metric.
  const report::RowWindows* windows = nullptr;
  double width = 3.25;  // inches
  std::string title;    // of the experiment, for those who can't see the figure
};

struct Drawing {
  Figure figure;
  std::string csv;  // the numbers that are drawn
};

// Of each of the comparison's rows: the index of its colour, the first baseline being 0.
std::vector<size_t> StyleIndices(const report::Comparison& comparison);

// Whether the setting of index 0 is what all others are compared with, and can be called so.
bool HasOneBaseline(const report::Comparison& comparison);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_INPUT_H_
