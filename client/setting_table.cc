// Rows per combination of settings: their labels, and what their runs came to.
#include "client/setting_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/number_text.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

void Take(const v1::RunRow& row, const std::string& key, SettingResult* result) {
  switch (row.state()) {
    case v1::RunState::DIVERGED:
      ++result->diverged;
      return;
    case v1::RunState::FAILED:
      ++result->failed;
      return;
    case v1::RunState::DONE:
      break;
    default:
      ++result->open;
      return;
  }
  const v1::Summary* summary = FindSummary(row, key);
  if (summary == nullptr || !summary->has_last()) return;
  ++result->n;
  result->mean += (summary->last() - result->mean) / result->n;
}

}  // namespace

std::string AxisName(const v1::Axis& axis) {
  if (axis.has_name()) return axis.name();
  return axis.field().substr(axis.field().rfind('.') + 1);
}

std::vector<Column> LabelColumns(const v1::ExperimentSpec& spec) {
  std::vector<Column> columns;
  for (const v1::Axis& axis : spec.axes()) columns.push_back({AxisName(axis), false});
  if (columns.empty()) columns.push_back({"setting", false});
  return columns;
}

std::vector<std::string> LabelRow(const v1::ExperimentSpec& spec, const Labels& labels) {
  std::vector<std::string> row;
  for (const v1::Axis& axis : spec.axes()) {
    const auto found = labels.find(AxisName(axis));
    row.push_back(found == labels.end() ? "" : found->second);
  }
  if (row.empty()) row.emplace_back("base");
  return row;
}

const v1::Summary* FindSummary(const v1::RunRow& row, const std::string& key) {
  const auto found = std::find_if(row.summaries().begin(), row.summaries().end(),
                                  [&](const v1::Summary& s) { return s.key() == key; });
  return found == row.summaries().end() ? nullptr : &*found;
}

std::vector<SettingResult> SettingResults(const v1::ListRunsResponse& runs,
                                          const std::string& key) {
  std::vector<SettingResult> results;
  std::map<Labels, size_t> places;
  for (const v1::RunRow& row : runs.rows()) {
    Labels labels(row.labels().begin(), row.labels().end());
    const auto [place, is_new] = places.emplace(labels, results.size());
    if (is_new) results.push_back({std::move(labels)});
    Take(row, key, &results[place->second]);
  }
  return results;
}

std::string SettingTable(const v1::ExperimentSpec& spec, const std::vector<SettingResult>& results,
                         const std::string& key, int width) {
  const auto any = [&](uint32_t SettingResult::*member) {
    return std::any_of(results.begin(), results.end(),
                       [&](const SettingResult& r) { return r.*member > 0; });
  };
  const bool any_failed = any(&SettingResult::failed);
  const bool any_open = any(&SettingResult::open);
  std::vector<Column> columns = LabelColumns(spec);
  columns.push_back({absl::StrCat("mean ", key), true});
  for (const char* title : {"n", "diverged"}) columns.push_back({title, true});
  if (any_failed) columns.push_back({"failed", true});
  if (any_open) columns.push_back({"open", true});
  Table table(std::move(columns));
  for (const SettingResult& result : results) {
    std::vector<std::string> row = LabelRow(spec, result.labels);
    row.push_back(result.n > 0 ? Short(result.mean) : "—");
    row.push_back(text::Grouped(result.n));
    row.push_back(text::Grouped(result.diverged));
    if (any_failed) row.push_back(text::Grouped(result.failed));
    if (any_open) row.push_back(text::Grouped(result.open));
    table.Add(std::move(row));
  }
  return table.Render(width);
}

}  // namespace ablate::client
