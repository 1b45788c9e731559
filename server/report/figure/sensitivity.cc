#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/comparison.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/responses.h"
#include "server/report/figure/small_multiples.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::MatchedBlock;

// Returns the values of the tuned axes except the first, which all points share: the base spec's.
std::vector<std::string> SharedLabels(const Comparison& comparison) {
  const MatchedBlock& block = comparison.matched[comparison.reference.value_or(0)];
  return {block.labels.begin() + 1, block.labels.end()};
}

void AddBlock(const MatchedBlock& block, size_t position, Responses* sensitivity) {
  for (const report::ComparisonRow& row : block.rows) {
    for (Response& setting : sensitivity->settings) {
      if (setting.label != row.label) continue;
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

// Returns the responses; FAILED_PRECONDITION if no axis is tuned, or another metric than the
// compared one is used for selection.
absl::StatusOr<Responses> ResponsesOf(const Input& input) {
  const Comparison& comparison = *input.comparison;
  if (!comparison.choice_key.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("kind: sensitivity can't draw ", comparison.Metric().text,
                     "; expected the metric by which tuned values are selected, ",
                     comparison.choice_key, ", at the end of the runs"));
  }
  const auto axis =
      std::find_if(input.axes.begin(), input.axes.end(), [&](const report::Axis& one) {
        return !comparison.tuned_axes.empty() && one.name == comparison.tuned_axes[0];
      });
  if (axis == input.axes.end() || comparison.matched.empty()) {
    return absl::FailedPreconditionError(
        "kind: sensitivity needs a tuned axis, and the experiment has none. Set `tune: true` on an "
        "axis");
  }
  Responses sensitivity;
  sensitivity.scale = comparison.scale;
  sensitivity.axis = axis->name;
  sensitivity.labels = axis->labels;
  sensitivity.values = axis->values;
  const std::vector<size_t> styles = StyleIndices(comparison);
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    sensitivity.settings.push_back(
        {comparison.rows[i].label, styles[i], std::vector<ResponsePoint>(axis->labels.size()), 0});
  }
  const std::vector<std::string> shared = SharedLabels(comparison);
  for (const MatchedBlock& block : comparison.matched) {
    if (!std::equal(shared.begin(), shared.end(), block.labels.begin() + 1)) continue;
    const auto label = std::find(axis->labels.begin(), axis->labels.end(), block.labels[0]);
    if (label == axis->labels.end()) continue;
    AddBlock(block, static_cast<size_t>(label - axis->labels.begin()), &sensitivity);
  }
  sensitivity.one_baseline = HasOneBaseline(comparison);
  sensitivity.colours = MultiplesText(sensitivity.one_baseline);
  if (!shared.empty()) {
    sensitivity.remarks = {absl::StrCat("at ", OthersText(comparison, shared))};
  }
  SortByValue(&sensitivity);
  return sensitivity;
}

// Returns the axis of a sensitivity figure; it is drawn only if there is one.
std::string FirstTuned(const Comparison& comparison) {
  return comparison.tuned_axes.empty() ? "" : comparison.tuned_axes[0];
}

std::string SensitivityCaption(const Input& input) {
  std::string text = absl::StrCat(SentenceName(input.comparison->Metric()), " over ",
                                  FirstTuned(*input.comparison));
  const auto sensitivity = ResponsesOf(input);
  if (!sensitivity.ok()) return absl::StrCat(text, ".");
  for (const std::string& others : sensitivity->remarks) absl::StrAppend(&text, " ", others);
  return absl::StrCat(text, ": ", ResponsesCaption(*sensitivity, input.width));
}

}  // namespace

// The metric over the values of the first tuned axis, with counts of divergences above.
constexpr Kind kSensitivity = {
    .name = "sensitivity",
    .title = "Sensitivity to the tuned axis",
    .key = "",
    .wide = false,
    .folded = false,
    .reads = Reads::kComparison,
    .forms = {},
    .wanted =
        [](const Comparison& comparison) {
          return !comparison.tuned_axes.empty() && comparison.choice_key.empty();
        },
    .reduce = nullptr,
    .draw = [](const Input& input) { return DrawResponses(ResponsesOf(input), input); },
    .caption = SensitivityCaption,
};

}  // namespace ablate::figure
