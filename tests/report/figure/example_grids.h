// Makes grids and curves that are difficult for figures.
#ifndef ABLATE_TESTS_REPORT_FIGURE_EXAMPLE_GRIDS_H_
#define ABLATE_TESTS_REPORT_FIGURE_EXAMPLE_GRIDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/report/figure/example_curves.h"

namespace ablate::figure {

inline constexpr double kWidths[] = {3.25, 6.75};  // inches: a column, and two

struct Example {
  std::string name;
  report::ComparisonInput grid;
  std::vector<CurveShape> shapes;
};

// Twelve settings of which one is far from the others, and one has a seed that is.
inline Example Outlier() {
  Example example{"outlier", {}, {}};
  std::vector<std::pair<std::string, std::vector<double>>> rows;
  for (int i = 0; i < 12; ++i) {
    const std::string label = i == 0 ? "base" : absl::StrCat("without-", i);
    example.shapes.push_back({label, 3.4, i == 7 ? 4.9 : 2.3 + 0.01 * ((i * 5) % 12), 300, 6});
    Noise own(static_cast<uint64_t>(i) + 3);
    rows.push_back({label, {}});
    for (int seed = 0; seed < 6; ++seed) {
      const double far = i == 7 ? 2.5 + 0.2 * seed : i == 4 && seed == 2 ? 0.9 : 0;
      rows.back().second.push_back(2.4 + .006 * ((i * 5) % 12 - 4) + .01 * own() + far);
    }
  }
  example.grid = Settings(rows);
  return example;
}

// Two crossed axes; with `learning_rates`, one more that is tuned and diverges at its high end.
inline Example Crossed(const std::string& name, const std::vector<std::string>& first,
                       const std::vector<std::string>& second, bool learning_rates) {
  Example example{name, {}, {}};
  report::ComparisonInput& grid = example.grid;
  grid.key = "eval/loss";
  grid.axes.resize(2);
  grid.axes[0].name = "norm.placement";
  grid.axes[0].labels = first;
  grid.axes[1].name = "residual";
  grid.axes[1].labels = second;
  if (learning_rates)
    grid.axes.push_back({"lr", {"0.001", "0.01", "0.1"}, true, {.001, .01, .1}, "0.01"});
  for (size_t a = 0; a < first.size(); ++a) {
    for (size_t b = 0; b < second.size(); ++b) {
      const double end = 2.3 + .12 * static_cast<double>(a) + .07 * static_cast<double>(b);
      example.shapes.push_back({absl::StrCat(first[a], "/", second[b]), 3.4 + .1 * end, end, 600, 4,
                                a == 1 && b == 1 ? 1u : 0u});
      for (uint32_t seed = 0; seed < 4; ++seed) {
        for (size_t learning_rate = 0; learning_rate < (learning_rates ? 3 : 1); ++learning_rate) {
          Noise own(seed * 97 + a * 31 + b * 11 + learning_rate);
          report::Cell cell;
          cell.labels = {first[a], second[b]};
          if (learning_rates) cell.labels.push_back(grid.axes[2].labels[learning_rate]);
          cell.seed = seed;
          const bool diverged = learning_rate == 2 && a + b > 0 && (a + b > 1 || seed < 2);
          cell.outcome = diverged ? report::RunOutcome::kDiverged : report::RunOutcome::kDone;
          cell.value = end + .02 * own() + (learning_rate == 1 ? -.05 : .05);
          grid.cells.push_back(std::move(cell));
        }
      }
    }
  }
  return example;
}

// Some labels have no room beside their marks.
inline Example LongLabels() {
  Example example{"labels", {}, {}};
  std::vector<std::pair<std::string, std::vector<double>>> rows;
  const std::vector<std::string> labels = {
      "pre", "post", "attention without a projection behind it",
      "feed-forward block of four times the width, with GELU and dropout of one tenth",
      "RMSNorm at 1e-6"};
  for (size_t i = 0; i < labels.size(); ++i) {
    const double end = 2.4 + .03 * static_cast<double>(i);
    example.shapes.push_back({labels[i], 3.4, end, 400, 4});
    rows.push_back({labels[i], {end, end + .02, end - .03, end + .01 * static_cast<double>(i)}});
  }
  example.grid = Settings(rows);
  return example;
}

}  // namespace ablate::figure

#endif  // ABLATE_TESTS_REPORT_FIGURE_EXAMPLE_GRIDS_H_
