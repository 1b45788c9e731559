// The tables for people: cells.h put into columns.
#include "server/report/table/comparison_tables.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/table/cells.h"
#include "server/report/text.h"
#include "server/report/verdict.h"

namespace ablate::report {
namespace {

// Adds columns over the rows of one comparison.
class Builder {
 public:
  explicit Builder(const Comparison& comparison) : comparison_(comparison) {}

  void Add(std::string title, bool number,
           const std::function<std::string(const ComparisonRow&)>& cell) {
    Column column{std::move(title), number, {}};
    for (const ComparisonRow& row : comparison_.rows) column.cells.push_back(cell(row));
    table_.columns.push_back(std::move(column));
  }

  // Leaves it out if it would be empty.
  void AddIfAny(std::string title, bool number,
                const std::function<std::string(const ComparisonRow&)>& cell) {
    Add(std::move(title), number, cell);
    const auto& cells = table_.columns.back().cells;
    const bool empty = std::all_of(cells.begin(), cells.end(),
                                   [](const std::string& text) { return text.empty(); });
    if (empty) table_.columns.pop_back();
  }

  void AddSettings() {
    if (comparison_.row_axes.empty()) {
      Add("setting", false, [](const ComparisonRow& row) { return row.label; });
    }
    for (size_t i = 0; i < comparison_.row_axes.size(); ++i) {
      Add(comparison_.row_axes[i], false, [i](const ComparisonRow& row) { return row.labels[i]; });
    }
  }

  void AddDifference() {
    Add(absl::StrCat("\u0394 vs ", BaselineName(comparison_), " [95 % CI]"), false, DifferenceCell);
  }

  Table Take() {
    table_.note = PreliminaryText(comparison_);
    return std::move(table_);
  }

 private:
  const Comparison& comparison_;
  Table table_;
};

// "eval/loss at step 100, higher is better, each at its own best lr".
std::string Heading(const Comparison& comparison, std::optional<uint32_t> at) {
  std::string heading = comparison.key;
  if (at.has_value()) absl::StrAppend(&heading, " at step ", *at);
  if (comparison.better == Better::kHigher) absl::StrAppend(&heading, ", higher is better");
  if (comparison.tuned_axes.empty()) return heading;
  return absl::StrCat(heading, ", each at its own best ",
                      absl::StrJoin(comparison.tuned_axes, " and "));
}

size_t LengthOf(const std::string& text) {
  const std::string clean = CleanText(text);
  size_t length = 0;
  for (absl::string_view rest = clean; !rest.empty(); ++length) TakeCharacter(&rest);
  return length;
}

}  // namespace

Table MainTable(const Comparison& comparison) {
  Builder builder(comparison);
  const int decimals = MeanDecimals(comparison);
  builder.AddSettings();
  builder.AddIfAny("parameters", true, ParametersCell);
  builder.AddIfAny(absl::StrCat("best ", absl::StrJoin(comparison.tuned_axes, "/")), false,
                   [](const ComparisonRow& row) { return ChosenCell(row); });
  builder.Add("n", true, [](const ComparisonRow& row) { return absl::StrCat(row.n); });
  builder.Add("diverged", true, DivergedCell);
  builder.Add(absl::StrCat(comparison.key, " [95 % CI]"), false,
              [decimals](const ComparisonRow& row) { return MeanCell(row, decimals, true); });
  builder.AddDifference();
  builder.AddIfAny("p (sign flip)", true, [](const ComparisonRow& row) {
    return PCell(row, row.difference.p_sign_flip, row.difference.exact);
  });
  builder.AddIfAny("p (Holm)", true, [](const ComparisonRow& row) {
    return PCell(row, row.p_holm, row.difference.exact);
  });
  builder.AddIfAny("d_z", true, [](const ComparisonRow& row) {
    return RatioCell(row, row.difference.effect, true);
  });
  builder.AddIfAny("wins", true, WinsCell);
  builder.AddIfAny("r", true, [](const ComparisonRow& row) {
    return RatioCell(row, row.difference.correlation, false);
  });
  builder.AddIfAny("device s", true,
                   [](const ComparisonRow& row) { return CostCell(row.device_seconds); });
  builder.AddIfAny("tokens/s", true,
                   [](const ComparisonRow& row) { return CostCell(row.tokens_per_second); });
  return builder.Take();
}

Table BriefTable(const Comparison& comparison, std::optional<uint32_t> at) {
  Builder builder(comparison);
  const int decimals = MeanDecimals(comparison);
  size_t widest = 0;
  for (const ComparisonRow& row : comparison.rows) widest = std::max(widest, LengthOf(row.label));
  builder.Add(Heading(comparison, at), false, [&](const ComparisonRow& row) {
    const std::string space(widest - LengthOf(row.label), ' ');
    return absl::StrCat(row.label, space, "  ", ChosenCell(row, comparison.tuned_axes));
  });
  builder.Add("mean", false,
              [decimals](const ComparisonRow& row) { return MeanCell(row, decimals, false); });
  builder.AddDifference();
  builder.AddIfAny("p (Holm)", false, [](const ComparisonRow& row) {
    return PCell(row, row.p_holm, row.difference.exact);
  });
  builder.AddIfAny("wins", false, WinsCell);
  builder.Add("diverged", false, DivergedCell);
  return builder.Take();
}

Table WindowTable(const Comparison& comparison, const RowWindows& windows) {
  if (windows.windows.empty()) return {};
  Builder builder(comparison);
  builder.AddSettings();
  Table table = builder.Take();
  table.note.clear();  // it stands above the comparison that this one goes with
  for (size_t i = 0; i < windows.windows.size(); ++i) {
    Column column{WindowName(windows.windows[i]), false, {}};
    for (const auto& row : windows.rows) {
      const Summary& over = row[i].over;
      std::string cell(ReasonText(over.mean.undefined));
      if (over.mean.defined()) {
        const int decimals = DecimalsFor(over.mean.value, over.interval);
        cell = Plain(over.mean.value, decimals);
        if (over.interval.defined()) {
          absl::StrAppend(&cell, " [", Plain(over.interval.low, decimals), ", ",
                          Plain(over.interval.high, decimals), "]");
        }
      }
      if (row[i].left_out > 0) {
        absl::StrAppend(&cell, " (", over.n, " of ", over.n + row[i].left_out, ")");
      }
      column.cells.push_back(std::move(cell));
    }
    table.columns.push_back(std::move(column));
  }
  return table;
}

}  // namespace ablate::report
