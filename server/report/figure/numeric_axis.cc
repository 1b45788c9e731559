#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/responses.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::ComparisonRow;

constexpr size_t kLeastValues = 2;    // for a line
constexpr size_t kLeastInReport = 3;  // with two values `forest` shows the same

// Returns the number of different numbers of a row axis; 0 if it isn't numeric.
size_t ValuesOf(const Comparison& comparison, size_t axis) {
  std::set<double> values;
  for (const ComparisonRow& row : comparison.rows) {
    if (!std::isnan(row.numbers[axis])) values.insert(row.numbers[axis]);
  }
  return values.size();
}

// Returns the row axis with the most values, the first of equals; nothing if none has `least`.
std::optional<size_t> LongestAxis(const Comparison& comparison, size_t least) {
  std::optional<size_t> longest;
  size_t most = least - 1;
  for (size_t axis = 0; axis < comparison.row_axes.size(); ++axis) {
    if (const size_t values = ValuesOf(comparison, axis); values > most) {
      longest = axis;
      most = values;
    }
  }
  return longest;
}

template <typename T>
std::vector<T> Without(std::vector<T> list, size_t index) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
  return list;
}

// Returns remarks about settings that can't be compared because their evaluation data differ.
std::vector<std::string> ScoredRemarks(const Comparison& comparison) {
  constexpr size_t kNamed = 3;
  const std::string data(report::ScoredText(comparison.key));
  std::vector<std::string> remarks, others;
  if (!comparison.within_axes.empty()) {
    remarks.push_back(absl::StrCat("settings of ", report::Enumerated(comparison.within_axes),
                                   " are evaluated on different ", data, ", so not comparable"));
  }
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.scored_differently.empty()) others.push_back(row.label);
  }
  if (!others.empty()) {
    remarks.push_back(absl::StrCat(
        "evaluated on other ", data,
        " than the baseline, so not comparable: ", report::Enumerated(others, kNamed)));
  }
  return remarks;
}

// Adds a line for each combination of the other row axes, in the rows' order. Returns the indices
// of those with a baseline.
std::set<size_t> AddLines(const Comparison& comparison, size_t axis, Responses* responses) {
  const bool one_baseline = HasOneBaseline(comparison);
  std::map<std::vector<std::string>, size_t> places;  // of lines, by their labels
  std::set<size_t> baselines;
  for (const ComparisonRow& row : comparison.rows) {
    const auto [place, added] =
        places.emplace(Without(row.labels, axis), responses->settings.size());
    if (added) {
      Response& line = responses->settings.emplace_back();
      if (comparison.row_axes.size() > 1) {
        line.label = report::SettingName(Without(comparison.row_axes, axis), place->first);
      }
      line.points.resize(responses->values.size());
    }
    if (row.is_baseline) baselines.insert(place->second);
    Response& line = responses->settings[place->second];
    const auto value =
        std::lower_bound(responses->values.begin(), responses->values.end(), row.numbers[axis]);
    ResponsePoint& point = line.points[static_cast<size_t>(value - responses->values.begin())];
    point = PointOf(row);
    point.baseline = row.is_baseline && one_baseline;
    line.diverged += row.diverged;
  }
  return baselines;
}

// Returns the data; FAILED_PRECONDITION if no row axis has enough numbers.
absl::StatusOr<Responses> DataOf(const Comparison& comparison) {
  const std::optional<size_t> axis = LongestAxis(comparison, kLeastValues);
  if (!axis.has_value()) {
    return absl::FailedPreconditionError(
        "kind: axis needs an axis that isn't tuned, with at least two numeric `values`, and the "
        "comparison has none. For a tuned axis use sensitivity");
  }
  Responses responses;
  responses.axis = comparison.row_axes[*axis];
  std::map<double, std::string> values;
  for (const ComparisonRow& row : comparison.rows) {
    values.emplace(row.numbers[*axis], row.labels[*axis]);
  }
  for (const auto& [value, label] : values) {
    responses.values.push_back(value);
    responses.labels.push_back(label);
  }
  const std::set<size_t> baselines = AddLines(comparison, *axis, &responses);
  // The line of the first baseline has the baselines' colour.
  const size_t lines = responses.settings.size();
  const std::vector<size_t> styles =
      StyleIndices(lines, baselines.empty() ? lines : *baselines.begin());
  for (size_t i = 0; i < lines; ++i) responses.settings[i].style = styles[i];
  responses.one_baseline = baselines.size() == 1;
  responses.colours = absl::StrCat(responses.one_baseline ? "black: the baseline's line; " : "",
                                   "grey: the other lines; ");
  responses.log_from = 8;
  responses.scale = comparison.scale;
  responses.unit = comparison.unit;
  responses.remarks = ScoredRemarks(comparison);
  return responses;
}

// Returns " Lines are combinations of norm and placement."; "" for one line.
std::string LinesText(const Comparison& comparison, const std::string& axis) {
  std::vector<std::string> others = comparison.row_axes;
  others.erase(std::remove(others.begin(), others.end(), axis), others.end());
  if (others.size() < 2) {
    return others.empty() ? "" : absl::StrCat(" Lines are settings of ", others[0], ".");
  }
  return absl::StrCat(" Lines are combinations of ", report::Enumerated(others), ".");
}

std::string AxisCaption(const Input& input) {
  const Comparison& comparison = *input.comparison;
  const std::string metric = SentenceName(comparison.Metric());
  const auto responses = DataOf(comparison);
  if (!responses.ok()) return absl::StrCat(metric, " over a numeric axis.");
  std::string text = absl::StrCat(metric, " over ", responses->axis, ": ",
                                  ResponsesCaption(*responses, input.width),
                                  LinesText(comparison, responses->axis));
  if (!comparison.tuned_axes.empty()) {
    absl::StrAppend(&text, " Each point is at its selected ",
                    absl::StrJoin(comparison.tuned_axes, " and "), ".");
  }
  if (HasOneBaseline(comparison)) absl::StrAppend(&text, " A ring marks the baseline.");
  for (std::string remark : responses->remarks) {
    remark[0] = absl::ascii_toupper(remark[0]);
    absl::StrAppend(&text, " ", remark, ".");
  }
  return text;
}

}  // namespace

// The metric over the numbers of a compared axis, one line per setting of the others.
constexpr Kind kAxis = {
    .name = "axis",
    .title = "Along the numeric axis",
    .key = "",
    .wide = false,
    .folded = false,
    .reads = Reads::kComparison,
    .forms = {},
    .wanted =
        [](const Comparison& comparison) {
          return LongestAxis(comparison, kLeastInReport).has_value();
        },
    .reduce = nullptr,
    .draw = [](const Input& input) { return DrawResponses(DataOf(*input.comparison), input); },
    .caption = AxisCaption,
};

}  // namespace ablate::figure
