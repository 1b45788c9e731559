#include "server/imports/compare.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"
#include "server/lookup/errors.h"

namespace ablate::imports {
namespace {

report::Axis AxisOf(const Axis& axis) {
  report::Axis result;
  result.name = axis.name;
  result.labels = axis.labels;
  result.tuned = axis.tuned && axis.labels.size() > 1;
  if (axis.values.front().has_number_value()) {
    for (const auto& value : axis.values) result.values.push_back(value.number_value());
  }
  result.base = axis.labels.front();
  return result;
}

// The items of a run in ascending order, with their values.
struct Items {
  std::vector<std::string> names;
  std::vector<std::string> groups;  // one per item, or none
  std::vector<double> values;
};

absl::StatusOr<Items> SortedItems(const Run& run, const Series& series) {
  std::vector<size_t> order(series.items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&series](size_t a, size_t b) { return series.items[a] < series.items[b]; });
  Items items;
  for (const size_t i : order) {
    if (!items.names.empty() && items.names.back() == series.items[i]) {
      return lookup::InvalidField("runs",
                                  absl::StrCat(reflect::ShortText(run.name), " has item ",
                                               reflect::Quoted(series.items[i]), " twice"),
                                  "one value of each item");
    }
    if (!std::isfinite(series.values[i])) {
      return lookup::InvalidField(
          "runs",
          absl::StrCat(reflect::ShortText(run.name), " has no finite value ", "of item ",
                       reflect::Quoted(series.items[i])),
          "a number for each item");
    }
    items.names.push_back(series.items[i]);
    items.values.push_back(series.values[i]);
    if (!series.groups.empty()) items.groups.push_back(series.groups[i]);
  }
  return items;
}

absl::Status OtherItems(const Run& run, const Items& items, const Run& first_run,
                        const Items& first) {
  std::vector<std::string> only;
  std::set_symmetric_difference(items.names.begin(), items.names.end(), first.names.begin(),
                                first.names.end(), std::back_inserter(only));
  return lookup::InvalidField(
      "runs",
      absl::StrCat(reflect::ShortText(run.name), " and ", reflect::ShortText(first_run.name),
                   only.empty() ? absl::StrCat(" have different groups")
                                : absl::StrCat(" differ in ", text::Grouped(only.size()),
                                               " items, such as ", reflect::Quoted(only.front()))),
      "the same items in all runs");
}

// Sets the values of the cell's units: of items, or of groups of them.
void SetUnits(const Items& items, report::Cell* cell) {
  cell->sequences = "items";
  cell->value = std::accumulate(items.values.begin(), items.values.end(), 0.0) /
                static_cast<double>(items.values.size());
  if (items.groups.empty()) {
    cell->by_sequence = items.values;
    return;
  }
  struct Sum {
    double total = 0, count = 0;
  };
  std::map<std::string, Sum> groups;
  for (size_t i = 0; i < items.values.size(); ++i) {
    Sum& sum = groups[items.groups[i]];
    sum.total += items.values[i];
    sum.count += 1;
  }
  // Values times number of groups, divided by number of items: their mean is that of the items.
  const double scale =
      static_cast<double>(groups.size()) / static_cast<double>(items.values.size());
  for (const auto& [group, sum] : groups) {
    cell->by_sequence.push_back(sum.total * scale);
    cell->sequence_weights.push_back(sum.count * scale);
  }
}

// Returns the record of a cell, named as an experiment's would be.
storage::CellRecord RecordOf(const Reading& reading, const Cell& cell) {
  storage::CellRecord record;
  record.seed = cell.seed;
  std::vector<std::string> parts;
  for (size_t axis = 0; axis < cell.labels.size(); ++axis) {
    const Axis& of = reading.axes[axis];
    const std::string& label = of.labels[cell.labels[axis]];
    record.labels.emplace_back(of.name, label);
    parts.push_back(of.values.front().has_number_value() ? absl::StrCat(of.name, label) : label);
  }
  if (!reading.by_item) parts.push_back(absl::StrCat("s", cell.seed));
  record.name = absl::StrJoin(parts, "-");
  return record;
}

report::Cell CellOf(const Reading& reading, const Cell& cell) {
  report::Cell result;
  for (size_t axis = 0; axis < cell.labels.size(); ++axis) {
    const Axis& of = reading.axes[axis];
    const size_t label = cell.labels[axis];
    result.labels.push_back(of.labels[label]);
    if (label == 0) continue;
    result.changed[absl::StrCat("settings.", of.path)] = spec::TextOfSetting(of.values[label]);
  }
  result.seed = cell.seed;
  result.outcome = cell.diverged ? report::RunOutcome::kDiverged : report::RunOutcome::kDone;
  if (!cell.diverged) result.value = cell.value;
  return result;
}

report::Better BetterOf(const Reading& reading) {
  if (!reading.better.has_value()) return report::Better::kNeither;
  return *reading.better == v1::Better::lower ? report::Better::kLower : report::Better::kHigher;
}

}  // namespace

absl::StatusOr<results::TrainedGrid> GridOf(const Reading& reading, std::optional<double> margin,
                                            const Results& results) {
  results::TrainedGrid grid;
  report::ComparisonInput& input = grid.input;
  input.key = reading.primary;
  input.source = report::MetricSource::kProgram;
  input.better = BetterOf(reading);
  input.margin = margin;
  if (reading.by_item) input.unit = report::Unit::kItem;
  for (const Axis& axis : reading.axes) {
    input.axes.push_back(AxisOf(axis));
    grid.base[absl::StrCat("settings.", axis.path)] = spec::TextOfSetting(axis.values.front());
  }
  Items first;
  for (const Cell& cell : reading.cells) {
    report::Cell result = CellOf(reading, cell);
    if (reading.by_item) {
      const Run& run = results.runs()[cell.run];
      ASSIGN_OR_RETURN(Items items, SortedItems(run, run.series.at(reading.metric)));
      if (first.names.empty()) first = items;
      if (items.names != first.names || items.groups != first.groups) {
        return OtherItems(run, items, results.runs()[reading.cells.front().run], first);
      }
      if (!items.groups.empty()) input.unit = report::Unit::kGroup;
      SetUnits(items, &result);
    }
    input.cells.push_back(std::move(result));
    grid.cells.push_back(RecordOf(reading, cell));
  }
  return grid;
}

}  // namespace ablate::imports
