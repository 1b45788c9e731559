// The table for programs: every number of a comparison.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/scale.h"
#include "server/report/table/comparison_tables.h"

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

// Returns "0.004=10;0.002=2".
std::string Chosen(const ComparisonRow& row) {
  std::vector<std::string> parts;
  for (const Choice& choice : row.chosen) {
    parts.push_back(absl::StrCat(absl::StrJoin(choice.labels, "/"), "=", choice.seeds));
  }
  return absl::StrJoin(parts, ";");
}

// Returns a count of pairs; empty for a baseline, which has none.
std::string OfPairs(const ComparisonRow& row, size_t count) {
  return row.compared() ? absl::StrCat(count) : "";
}

std::string Least(const ComparisonRow& row) {
  return row.parameters.has_value() ? absl::StrCat(row.parameters->low) : std::string();
}

// Only if the row's runs differ.
std::string Most(const ComparisonRow& row) {
  const bool differ = row.parameters.has_value() && row.parameters->low < row.parameters->high;
  return differ ? absl::StrCat(row.parameters->high) : std::string();
}

using Whole = const Comparison&;
using Row = const ComparisonRow&;

std::string VerdictOf(const Comparison& comparison, Row row) {
  if (!row.compared()) return "";
  return std::string(OutcomeName(Decide(comparison, row).outcome));
}

std::string GradeOf(const Comparison& comparison, Row row) {
  if (!row.compared()) return "";
  return std::string(GradeName(Decide(comparison, row).grade));
}

// Returns the difference as a ratio, if ratios are compared.
Number RatioOf(const Comparison& comparison, Row row) {
  if (comparison.scale != Scale::kRatio) return NoNumber(Undefined::kNotRecorded);
  return OffScale(Scale::kRatio, row.difference.mean);
}

Interval RatioIntervalOf(const Comparison& comparison, Row row) {
  if (comparison.scale != Scale::kRatio) return NoInterval(Undefined::kNotRecorded);
  return OffScale(Scale::kRatio, row.difference.interval);
}

struct Field {
  const char* title;
  std::string (*text)(Whole comparison, Row row);
};

constexpr size_t kFieldsBeforeAxes = 2;

constexpr Field kFields[] = {
    {"key", [](Whole comparison, Row) { return comparison.key; }},
    {"label", [](Whole, Row row) { return row.label; }},
    {"baseline", [](Whole, Row row) { return Flag(row.is_baseline); }},
    {"n", [](Whole, Row row) { return absl::StrCat(row.n); }},
    {"diverged", [](Whole, Row row) { return absl::StrCat(row.diverged); }},
    {"missing", [](Whole, Row row) { return absl::StrCat(row.missing); }},
    {"failed", [](Whole, Row row) { return absl::StrCat(row.failed); }},
    {"chosen", [](Whole, Row row) { return Chosen(row); }},
    {"mean", [](Whole, Row row) { return Exact(row.mean); }},
    {"mean_low", [](Whole, Row row) { return Low(row.interval); }},
    {"mean_high", [](Whole, Row row) { return High(row.interval); }},
    {"difference", [](Whole, Row row) { return Exact(row.difference.mean); }},
    {"difference_low", [](Whole, Row row) { return Low(row.difference.interval); }},
    {"difference_high", [](Whole, Row row) { return High(row.difference.interval); }},
    {"difference_deviation", [](Whole, Row row) { return Exact(row.difference.deviation); }},
    {"bca_low", [](Whole, Row row) { return Low(row.difference.bca); }},
    {"bca_high", [](Whole, Row row) { return High(row.difference.bca); }},
    {"p_sign_flip", [](Whole, Row row) { return Exact(row.difference.p_sign_flip); }},
    {"p", [](Whole, Row row) { return Exact(row.p); }},
    {"p_holm", [](Whole, Row row) { return Exact(row.p_holm); }},
    {"p_equivalence", [](Whole, Row row) { return Exact(row.p_equivalence); }},
    {"p_t", [](Whole, Row row) { return Exact(row.difference.p_t); }},
    {"exact", [](Whole, Row row) { return Flag(row.exact); }},
    {"effect", [](Whole, Row row) { return Exact(row.difference.effect); }},
    {"effect_unbiased", [](Whole, Row row) { return Exact(row.difference.effect_unbiased); }},
    {"correlation", [](Whole, Row row) { return Exact(row.difference.correlation); }},
    {"wins", [](Whole, Row row) { return OfPairs(row, row.pairs.wins); }},
    {"losses", [](Whole, Row row) { return OfPairs(row, row.pairs.losses); }},
    {"ties", [](Whole, Row row) { return OfPairs(row, row.pairs.ties); }},
    {"pairs", [](Whole, Row row) { return OfPairs(row, row.pairs.all); }},
    {"pairs_converged", [](Whole, Row row) { return OfPairs(row, row.pairs.converged); }},
    {"parameters", [](Whole, Row row) { return Least(row); }},
    {"most_parameters", [](Whole, Row row) { return Most(row); }},
    {"device_seconds", [](Whole, Row row) { return Exact(row.device_seconds); }},
    {"device_seconds_all", [](Whole, Row row) { return Exact(row.device_seconds_all); }},
    {"tokens_per_second", [](Whole, Row row) { return Exact(row.tokens_per_second); }},
    {"unfinished", [](Whole, Row row) { return absl::StrCat(row.unfinished); }},
    {"ended", [](Whole comparison, Row) { return absl::StrCat(comparison.ended); }},
    {"planned", [](Whole comparison, Row) { return absl::StrCat(comparison.planned); }},
    {"verdict", VerdictOf},
    {"grade", GradeOf},
    {"scale",
     [](Whole comparison, Row) {
       return std::string(comparison.scale == Scale::kRatio ? "ratio" : "difference");
     }},
    {"ratio", [](Whole comparison, Row row) { return Exact(RatioOf(comparison, row)); }},
    {"ratio_low", [](Whole comparison, Row row) { return Low(RatioIntervalOf(comparison, row)); }},
    {"ratio_high",
     [](Whole comparison, Row row) { return High(RatioIntervalOf(comparison, row)); }},
    {"p_t_holm", [](Whole, Row row) { return Exact(row.p_t_holm); }},
    {"step", [](Whole comparison,
                Row) { return comparison.at.has_value() ? absl::StrCat(*comparison.at) : ""; }},
    {"unit", [](Whole comparison, Row) { return std::string(UnitName(comparison.unit)); }},
};

// Returns an axis's name; if a column has it, axis_NAME.
std::string AxisTitle(const std::string& axis) {
  const bool taken = std::any_of(std::begin(kFields), std::end(kFields),
                                 [&axis](const Field& field) { return axis == field.title; });
  return taken ? AxisColumn(axis) : axis;
}

}  // namespace

std::string AxisColumn(const std::string& axis) { return absl::StrCat("axis_", axis); }

Table DataTable(const Comparison& comparison) {
  Table table;
  const auto add = [&](std::string title, const auto& text) {
    Column& column = table.columns.emplace_back(Column{std::move(title), true});
    for (const ComparisonRow& row : comparison.rows) column.cells.push_back({text(row)});
  };
  for (size_t field = 0; field < std::size(kFields); ++field) {
    if (field == kFieldsBeforeAxes) {
      for (size_t i = 0; i < comparison.row_axes.size(); ++i) {
        add(AxisTitle(comparison.row_axes[i]), [i](Row row) { return row.labels[i]; });
      }
    }
    add(kFields[field].title, [&](Row row) { return kFields[field].text(comparison, row); });
  }
  return table;
}

}  // namespace ablate::report
