// The table for programs: every number exact, one a column.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/decision.h"
#include "server/report/table/comparison_tables.h"
#include "server/report/text.h"
#include "server/report/verdict.h"
#include "text/decimal.h"

namespace ablate::report {
namespace {

std::string Exact(double value) {
  std::string text;
  text::AppendDecimal(value, &text);
  return text;
}

std::string Exact(const Number& number) {
  return number.defined() ? Exact(number.value) : std::string();
}

std::string Low(const Interval& interval) {
  return interval.defined() ? Exact(interval.low) : std::string();
}

std::string High(const Interval& interval) {
  return interval.defined() ? Exact(interval.high) : std::string();
}

std::string Flag(bool value) { return value ? "true" : "false"; }

// "0.004=10;0.002=2".
std::string Chosen(const ComparisonRow& row) {
  std::vector<std::string> parts;
  for (const Choice& choice : row.chosen) {
    parts.push_back(absl::StrCat(absl::StrJoin(choice.labels, "/"), "=", choice.seeds));
  }
  return absl::StrJoin(parts, ";");
}

std::string Least(const ComparisonRow& row) {
  return row.parameters.has_value() ? absl::StrCat(row.parameters->low) : std::string();
}

// Only where the row's runs differ.
std::string Most(const ComparisonRow& row) {
  const bool differ = row.parameters.has_value() && row.parameters->low < row.parameters->high;
  return differ ? absl::StrCat(row.parameters->high) : std::string();
}

struct Field {
  const char* title;
  std::string (*text)(const ComparisonRow& row);
};

using Row = const ComparisonRow&;

constexpr Field kFields[] = {
    {"baseline", [](Row row) { return Flag(row.is_baseline); }},
    {"n", [](Row row) { return absl::StrCat(row.n); }},
    {"diverged", [](Row row) { return absl::StrCat(row.diverged); }},
    {"missing", [](Row row) { return absl::StrCat(row.missing); }},
    {"failed", [](Row row) { return absl::StrCat(row.failed); }},
    {"chosen", [](Row row) { return Chosen(row); }},
    {"mean", [](Row row) { return Exact(row.mean); }},
    {"mean_low", [](Row row) { return Low(row.interval); }},
    {"mean_high", [](Row row) { return High(row.interval); }},
    {"difference", [](Row row) { return Exact(row.difference.mean); }},
    {"difference_low", [](Row row) { return Low(row.difference.interval); }},
    {"difference_high", [](Row row) { return High(row.difference.interval); }},
    {"difference_deviation", [](Row row) { return Exact(row.difference.deviation); }},
    {"bca_low", [](Row row) { return Low(row.difference.bca); }},
    {"bca_high", [](Row row) { return High(row.difference.bca); }},
    {"p_sign_flip", [](Row row) { return Exact(row.difference.p_sign_flip); }},
    {"p_holm", [](Row row) { return Exact(row.p_holm); }},
    {"p_t", [](Row row) { return Exact(row.difference.p_t); }},
    {"exact", [](Row row) { return Flag(row.difference.exact); }},
    {"effect", [](Row row) { return Exact(row.difference.effect); }},
    {"effect_unbiased", [](Row row) { return Exact(row.difference.effect_unbiased); }},
    {"correlation", [](Row row) { return Exact(row.difference.correlation); }},
    {"wins", [](Row row) { return absl::StrCat(row.pairs.wins); }},
    {"losses", [](Row row) { return absl::StrCat(row.pairs.losses); }},
    {"ties", [](Row row) { return absl::StrCat(row.pairs.ties); }},
    {"pairs", [](Row row) { return absl::StrCat(row.pairs.all); }},
    {"pairs_converged", [](Row row) { return absl::StrCat(row.pairs.converged); }},
    {"parameters", [](Row row) { return Least(row); }},
    {"most_parameters", [](Row row) { return Most(row); }},
    {"device_seconds", [](Row row) { return Exact(row.device_seconds); }},
    {"device_seconds_all", [](Row row) { return Exact(row.device_seconds_all); }},
    {"tokens_per_second", [](Row row) { return Exact(row.tokens_per_second); }},
    {"unfinished", [](Row row) { return absl::StrCat(row.unfinished); }},
};

// An axis's name, unless a field has it.
std::string AxisTitle(const std::string& axis) {
  const bool taken = axis == "label" || axis == "key" || axis == "ended" || axis == "planned" ||
                     axis == "verdict" ||
                     std::any_of(std::begin(kFields), std::end(kFields),
                                 [&axis](const Field& field) { return axis == field.title; });
  return taken ? absl::StrCat("axis_", axis) : axis;
}

}  // namespace

Table DataTable(const Comparison& comparison) {
  Table table;
  const auto add = [&](std::string title, const std::function<std::string(Row)>& text) {
    Column column{std::move(title), true, {}};
    for (const ComparisonRow& row : comparison.rows) column.cells.push_back(text(row));
    table.columns.push_back(std::move(column));
  };
  add("key", [&comparison](Row) { return comparison.key; });
  add("label", [](Row row) { return row.label; });
  for (size_t i = 0; i < comparison.row_axes.size(); ++i) {
    add(AxisTitle(comparison.row_axes[i]), [i](Row row) { return row.labels[i]; });
  }
  for (const Field& field : kFields) add(field.title, field.text);
  add("ended", [&comparison](Row) { return absl::StrCat(comparison.ended); });
  add("planned", [&comparison](Row) { return absl::StrCat(comparison.planned); });
  add("verdict", [&comparison](Row row) {
    if (!row.compared()) return std::string();
    return std::string(OutcomeName(Decide(row, comparison.better, comparison.family).outcome));
  });
  return table;
}

}  // namespace ablate::report
