// What figures are drawn from.
#include "server/report/figure/input.h"

#include <algorithm>

namespace ablate::figure {

std::vector<size_t> StyleIndices(const report::Comparison& comparison) {
  const size_t rows = comparison.rows.size();
  size_t baseline = 0;
  while (baseline < rows && !comparison.rows[baseline].is_baseline) ++baseline;
  std::vector<size_t> indices(rows);
  // Those before the baseline make room for it.
  for (size_t row = 0; row < rows; ++row) {
    indices[row] = baseline < rows && row < baseline ? row + 1 : row;
  }
  if (baseline < rows) indices[baseline] = 0;
  return indices;
}

bool HasOneBaseline(const report::Comparison& comparison) {
  return std::count_if(comparison.rows.begin(), comparison.rows.end(),
                       [](const report::ComparisonRow& row) { return row.is_baseline; }) == 1;
}

}  // namespace ablate::figure
