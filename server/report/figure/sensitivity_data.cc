#include "server/report/figure/sensitivity_data.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::MatchedBlock;

// Values of the tuned axes but the first that all points share: the base spec's.
std::vector<std::string> SharedLabels(const Comparison& comparison) {
  const MatchedBlock& block = comparison.matched[comparison.reference.value_or(0)];
  return {block.labels.begin() + 1, block.labels.end()};
}

ResponsePoint PointOf(const report::ComparisonRow& row) {
  ResponsePoint point;
  point.present = row.n > 0;
  point.own = row.own;
  point.n = row.n;
  point.diverged = row.diverged;
  for (const report::SeedRun& run : row.runs) {
    if (!run.diverged) point.seeds.push_back(run);
  }
  return point;
}

void AddBlock(const MatchedBlock& block, size_t position, SensitivityData* sensitivity) {
  for (const report::ComparisonRow& row : block.rows) {
    for (Response& setting : sensitivity->settings) {
      if (setting.label != row.mark) continue;
      setting.points[position] = PointOf(row);
      setting.diverged += row.diverged;
    }
  }
}

std::string OthersText(const Comparison& comparison, const std::vector<std::string>& labels) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < labels.size(); ++i) {
    parts.push_back(absl::StrCat(comparison.tuned_axes[i + 1], " ", labels[i]));
  }
  return absl::StrJoin(parts, ", ");
}

// Numbers in ascending order: a line from one value to the next would otherwise go back and forth.
report::Axis Ascending(const report::Axis& axis) {
  if (axis.values.size() != axis.labels.size()) return axis;
  std::vector<size_t> order(axis.labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return axis.values[a] < axis.values[b]; });
  report::Axis ascending = axis;
  for (size_t i = 0; i < order.size(); ++i) {
    ascending.labels[i] = axis.labels[order[i]];
    ascending.values[i] = axis.values[order[i]];
  }
  return ascending;
}

}  // namespace

absl::StatusOr<SensitivityData> SensitivityOf(const Input& input) {
  const Comparison& comparison = *input.comparison;
  if (!comparison.choice_key.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("kind: sensitivity draws metrics of training and evaluations, and ",
                     report::NameOfMetric(comparison.key).text, " is a number of an analysis"));
  }
  const auto found =
      std::find_if(input.axes.begin(), input.axes.end(), [&](const report::Axis& one) {
        return !comparison.tuned_axes.empty() && one.name == comparison.tuned_axes[0];
      });
  if (found == input.axes.end() || comparison.matched.empty()) {
    return absl::FailedPreconditionError(
        "kind: sensitivity is drawn over a tuned axis, and the experiment has none; an axis is "
        "tuned with `tune: true`");
  }
  SensitivityData sensitivity;
  const report::Axis axis = Ascending(*found);
  sensitivity.axis = axis.name;
  sensitivity.labels = axis.labels;
  sensitivity.values = axis.values;
  const std::vector<size_t> styles = StyleIndices(comparison);
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    sensitivity.settings.push_back(
        {comparison.rows[i].mark, styles[i], std::vector<ResponsePoint>(axis.labels.size()), 0});
  }
  const std::vector<std::string> shared = SharedLabels(comparison);
  for (const MatchedBlock& block : comparison.matched) {
    if (!std::equal(shared.begin(), shared.end(), block.labels.begin() + 1)) continue;
    const auto label = std::find(axis.labels.begin(), axis.labels.end(), block.labels[0]);
    if (label == axis.labels.end()) continue;
    AddBlock(block, static_cast<size_t>(label - axis.labels.begin()), &sensitivity);
  }
  sensitivity.others = OthersText(comparison, shared);
  return sensitivity;
}

std::string SensitivityCsv(const SensitivityData& sensitivity) {
  std::string csv = "axis,setting,value,seed,metric,low,high,n,diverged\n";
  const std::string axis = CsvText(sensitivity.axis);
  for (const Response& setting : sensitivity.settings) {
    for (size_t i = 0; i < setting.points.size(); ++i) {
      const ResponsePoint& point = setting.points[i];
      if (!point.present) continue;
      const std::string label = CsvText(setting.label), value = CsvText(sensitivity.labels[i]);
      AddCsvRow({axis, label, value, "", CsvNumber(point.own.mean.value),
                 CsvNumber(point.own.interval.low), CsvNumber(point.own.interval.high),
                 absl::StrCat(point.n), absl::StrCat(point.diverged)},
                &csv);
      for (const report::SeedRun& run : point.seeds) {
        AddCsvRow(
            {axis, label, value, absl::StrCat(run.seed), CsvNumber(run.value), "", "", "", ""},
            &csv);
      }
    }
  }
  return csv;
}

}  // namespace ablate::figure
