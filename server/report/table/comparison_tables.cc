#include "server/report/table/comparison_tables.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/table/cells.h"

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

  // Leaves it out if no cell would say anything.
  void AddIfAny(std::string title, bool number,
                const std::function<std::string(const ComparisonRow&)>& cell) {
    Add(std::move(title), number, cell);
    const auto& cells = table_.columns.back().cells;
    const bool empty = std::all_of(cells.begin(), cells.end(), [](const std::string& text) {
      return text.empty() || text == kNone;
    });
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
    const bool ratio = comparison_.scale == Scale::kRatio;
    Add(absl::StrCat(ratio ? "ratio to " : "\u0394 vs ", BaselineName(comparison_), " [95 % CI]"),
        false,
        [scale = comparison_.scale, decimals = DifferenceDecimals(comparison_)](
            const ComparisonRow& row) { return DifferenceCell(row, scale, decimals); });
  }

  Table Take() {
    table_.note = PreliminaryText(comparison_);
    if (table_.note.empty() && !comparison_.exploratory.empty()) {
      table_.note = absl::StrCat("exploratory: ", comparison_.exploratory);
    }
    return std::move(table_);
  }

 private:
  const Comparison& comparison_;
  Table table_;
};

// "held-out loss at step 100".
std::string MetricAtText(const Comparison& comparison) {
  return absl::StrCat(NameOfMetric(comparison.key).text,
                      comparison.at.has_value() ? absl::StrCat(" at step ", *comparison.at) : "");
}

// Where neither is better nobody wins.
bool HasWins(const Comparison& comparison) { return comparison.better != Better::kNeither; }

// Whether all rows have as many runs with a result.
bool SameCounts(const Comparison& comparison) {
  return std::all_of(comparison.rows.begin(), comparison.rows.end(),
                     [&](const ComparisonRow& row) { return row.n == comparison.rows[0].n; });
}

// "held-out loss at step 100, higher is better, each at its chosen lr".
std::string Heading(const Comparison& comparison) {
  std::string heading = MetricAtText(comparison);
  if (comparison.better == Better::kHigher) absl::StrAppend(&heading, ", higher is better");
  return absl::StrCat(heading, TunedText(comparison));
}

}  // namespace

Table MainTable(const Comparison& comparison) {
  Builder builder(comparison);
  const int decimals = MeanDecimals(comparison);
  builder.AddSettings();
  builder.AddIfAny("parameters", true, ParametersCell);
  builder.AddIfAny(absl::StrCat("chosen ", absl::StrJoin(comparison.tuned_axes, "/")), false,
                   [](const ComparisonRow& row) { return ChosenText(row); });
  builder.Add("n", true, [](const ComparisonRow& row) { return absl::StrCat(row.n); });
  builder.Add("diverged", true, DivergedCell);
  const bool ratio = comparison.scale == Scale::kRatio;
  builder.Add(absl::StrCat(MetricAtText(comparison), ratio ? ", geometric mean" : "", " [95 % CI]"),
              false, [scale = comparison.scale, decimals](const ComparisonRow& row) {
                return MeanCell(row, scale, decimals, true);
              });
  builder.AddDifference();
  builder.AddIfAny("p (sign flip)", true, [](const ComparisonRow& row) {
    return PCell(row, row.difference.p_sign_flip, row.difference.exact);
  });
  builder.AddIfAny("p (Holm)", true,
                   [](const ComparisonRow& row) { return PCell(row, row.p_holm, row.exact); });
  builder.AddIfAny("d_z", true, [](const ComparisonRow& row) {
    return PureNumberCell(row, row.difference.effect, true);
  });
  if (HasWins(comparison)) builder.AddIfAny("wins", true, WinsCell);
  builder.AddIfAny("r", true, [](const ComparisonRow& row) {
    return PureNumberCell(row, row.difference.correlation, false);
  });
  builder.AddIfAny("device-s", true,
                   [](const ComparisonRow& row) { return CostCell(row.device_seconds); });
  builder.AddIfAny("tokens/s", true,
                   [](const ComparisonRow& row) { return CostCell(row.tokens_per_second); });
  return builder.Take();
}

Table BriefTable(const Comparison& comparison) {
  Builder builder(comparison);
  const int decimals = MeanDecimals(comparison);
  size_t widest = 0;
  for (const ComparisonRow& row : comparison.rows)
    widest = std::max(widest, text::CountCharacters(row.label));
  builder.Add(Heading(comparison), false, [&](const ComparisonRow& row) {
    const std::string space(widest - text::CountCharacters(row.label), ' ');
    return absl::StrCat(row.label, space, "  ", ChosenText(row, comparison.tuned_axes));
  });
  if (!SameCounts(comparison)) {
    builder.Add("n", false, [](const ComparisonRow& row) { return absl::StrCat(row.n); });
  }
  builder.Add(std::string(MeanName(comparison.scale)), false,
              [scale = comparison.scale, decimals](const ComparisonRow& row) {
                return MeanCell(row, scale, decimals, false);
              });
  builder.AddDifference();
  builder.AddIfAny("p (Holm)", false,
                   [](const ComparisonRow& row) { return PCell(row, row.p_holm, row.exact); });
  if (HasWins(comparison)) builder.AddIfAny("wins", false, WinsCell);
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
    std::vector<ColumnNumber> numbers;
    for (const auto& row : windows.rows)
      numbers.push_back({row[i].over.mean, row[i].over.interval});
    const int digits = ColumnDecimals(numbers);
    for (const auto& row : windows.rows) {
      const Summary& over = row[i].over;
      std::string cell(ReasonText(over.mean.undefined));
      if (over.mean.defined()) {
        const int decimals = DecimalsIn(digits, over.mean, over.interval);
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

Table FactorialTable(const Comparison& comparison) {
  constexpr size_t kMaxLines = 40;
  const Factorial& factorial = comparison.factorial;
  std::vector<Effect> effects = factorial.main;
  effects.insert(effects.end(), factorial.interactions.begin(), factorial.interactions.end());
  if (effects.empty()) return {};
  const size_t left_out = effects.size() > kMaxLines ? effects.size() - kMaxLines : 0;
  effects.resize(effects.size() - left_out);
  Table table;
  const auto add = [&](std::string title, const std::function<std::string(const Effect&)>& cell) {
    Column column{std::move(title), false, {}};
    for (const Effect& effect : effects) column.cells.push_back(cell(effect));
    table.columns.push_back(std::move(column));
  };
  add("crossed axes", EffectText);
  add("over", [](const Effect& effect) { return Counted(effect.combinations, "combination"); });
  const bool ratio = comparison.scale == Scale::kRatio;
  add(ratio ? "ratio [95 % CI]" : "\u0394 [95 % CI]",
      [scale = comparison.scale,
       column = EffectDecimals(comparison.scale, factorial)](const Effect& effect) {
        const PairedStatistics& of = effect.difference;
        if (!of.mean.defined()) return std::string(PairReasonText(of.mean.undefined));
        return ShownDifference(scale, of.mean, of.interval, column);
      });
  if (comparison.tuned_axes.empty()) {
    add("p (Holm)", [](const Effect& effect) {
      if (!effect.p_holm.defined()) return std::string(PairReasonText(effect.p_holm.undefined));
      return PNumber(effect.p_holm.value);
    });
  }
  if (left_out > 0) {
    table.note =
        absl::StrCat("the first ", kMaxLines, " of ", kMaxLines + left_out, "; all are in --json");
  }
  return table;
}

std::string ComparisonText(const Comparison& comparison, const RowWindows& windows) {
  std::string out = RenderText(BriefTable(comparison));
  const auto line = [&out](absl::string_view label, const std::string& sentence) {
    if (!sentence.empty()) absl::StrAppend(&out, label, text::CleanText(sentence), "\n");
  };
  line("", MatchedNote(comparison));
  out.push_back('\n');
  line("", OverallVerdict(comparison).text);
  for (const Warning& warning : comparison.warnings) line("warning: ", warning.text);
  line("note: ", WithinNote(comparison));
  line("note: ", MeansNote(comparison));
  line("note: ", DivergedNote(comparison));
  if (!comparison.tuned_axes.empty() && comparison.family > 0) {
    line("note: ",
         absl::StrCat("each ", absl::StrJoin(comparison.tuned_axes, " and "),
                      " is chosen on the other seeds",
                      comparison.choice_key.empty()
                          ? ""
                          : absl::StrCat(", by ", NameOfMetric(comparison.choice_key).text),
                      IsRechosen(comparison) ? ", again under every pattern of signs" : ""));
  }
  if (const Table effects = FactorialTable(comparison); !effects.columns.empty()) {
    absl::StrAppend(&out, "\n", RenderText(effects));
  }
  const Table table = WindowTable(comparison, windows);
  if (!table.columns.empty()) {
    absl::StrAppend(&out, "\nover converged runs, mean [95 % CI]:\n", RenderText(table));
  }
  return out;
}

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

// A count of pairs, which a baseline has none of.
std::string OfPairs(const ComparisonRow& row, size_t count) {
  return row.compared() ? absl::StrCat(count) : "";
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
    {"p", [](Row row) { return Exact(row.p); }},
    {"p_holm", [](Row row) { return Exact(row.p_holm); }},
    {"p_equivalence", [](Row row) { return Exact(row.p_equivalence); }},
    {"p_t", [](Row row) { return Exact(row.difference.p_t); }},
    {"exact", [](Row row) { return Flag(row.exact); }},
    {"effect", [](Row row) { return Exact(row.difference.effect); }},
    {"effect_unbiased", [](Row row) { return Exact(row.difference.effect_unbiased); }},
    {"correlation", [](Row row) { return Exact(row.difference.correlation); }},
    {"wins", [](Row row) { return OfPairs(row, row.pairs.wins); }},
    {"losses", [](Row row) { return OfPairs(row, row.pairs.losses); }},
    {"ties", [](Row row) { return OfPairs(row, row.pairs.ties); }},
    {"pairs", [](Row row) { return OfPairs(row, row.pairs.all); }},
    {"pairs_converged", [](Row row) { return OfPairs(row, row.pairs.converged); }},
    {"parameters", [](Row row) { return Least(row); }},
    {"most_parameters", [](Row row) { return Most(row); }},
    {"device_seconds", [](Row row) { return Exact(row.device_seconds); }},
    {"device_seconds_all", [](Row row) { return Exact(row.device_seconds_all); }},
    {"tokens_per_second", [](Row row) { return Exact(row.tokens_per_second); }},
    {"unfinished", [](Row row) { return absl::StrCat(row.unfinished); }},
};

// What the whole comparison says, too, before the axes and behind all else.
struct WholeField {
  const char* title;
  std::string (*text)(const Comparison& comparison, const ComparisonRow& row);
};

std::string VerdictOf(const Comparison& comparison, Row row) {
  if (!row.compared()) return "";
  return std::string(OutcomeName(Decide(comparison, row).outcome));
}

std::string GradeOf(const Comparison& comparison, Row row) {
  if (!row.compared()) return "";
  return std::string(GradeName(Decide(comparison, row).grade));
}

// The difference as a ratio, where ratios are compared.
Number RatioOf(const Comparison& comparison, Row row) {
  if (comparison.scale != Scale::kRatio) return NoNumber(Undefined::kNotRecorded);
  return OffScale(Scale::kRatio, row.difference.mean);
}

Interval RatioIntervalOf(const Comparison& comparison, Row row) {
  if (comparison.scale != Scale::kRatio) return NoInterval(Undefined::kNotRecorded);
  return OffScale(Scale::kRatio, row.difference.interval);
}

using Whole = const Comparison&;

constexpr WholeField kFirstFields[] = {
    {"key", [](Whole comparison, Row) { return comparison.key; }},
    {"label", [](Whole, Row row) { return row.label; }},
};

constexpr WholeField kLastFields[] = {
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
};

// An axis's name, unless a column has it.
std::string AxisTitle(const std::string& axis) {
  const auto is_axis = [&axis](const auto& field) { return axis == field.title; };
  const bool taken = std::any_of(std::begin(kFirstFields), std::end(kFirstFields), is_axis) ||
                     std::any_of(std::begin(kFields), std::end(kFields), is_axis) ||
                     std::any_of(std::begin(kLastFields), std::end(kLastFields), is_axis);
  return taken ? AxisColumn(axis) : axis;
}

}  // namespace

std::string AxisColumn(const std::string& axis) { return absl::StrCat("axis_", axis); }

Table DataTable(const Comparison& comparison) {
  Table table;
  const auto add = [&](std::string title, const std::function<std::string(Row)>& text) {
    Column column{std::move(title), true, {}};
    for (const ComparisonRow& row : comparison.rows) column.cells.push_back(text(row));
    table.columns.push_back(std::move(column));
  };
  const auto add_all = [&](const auto& fields) {
    for (const WholeField& field : fields) {
      add(field.title, [&](Row row) { return field.text(comparison, row); });
    }
  };
  add_all(kFirstFields);
  for (size_t i = 0; i < comparison.row_axes.size(); ++i) {
    add(AxisTitle(comparison.row_axes[i]), [i](Row row) { return row.labels[i]; });
  }
  for (const Field& field : kFields) add(field.title, field.text);
  add_all(kLastFields);
  return table;
}

}  // namespace ablate::report
