#include "server/report/table/comparison_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/decimal.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/table/cells.h"

namespace ablate::report {
namespace {

// Makes a column with a cell for each row of a comparison, or for each effect.
template <class Rows, class CellOf>
Column ColumnOf(std::string title, bool number, const Rows& rows, const CellOf& cell) {
  Column column{std::move(title), number};
  for (const auto& row : rows) column.cells.push_back(cell(row));
  return column;
}

TableCell ParametersCell(const ComparisonRow& row) {
  if (!row.parameters.has_value()) return {};
  const std::string low = text::Grouped(row.parameters->low);
  if (row.parameters->low == row.parameters->high) return {low};
  return {absl::StrCat(low, "\u2013", text::Grouped(row.parameters->high))};
}

TableCell RunsCell(const ComparisonRow& row) {
  TableCell cell = {absl::StrCat(row.n)};
  const size_t missing = row.missing - row.unfinished;
  if (row.unfinished > 0) AddNote(&cell, absl::StrCat(row.unfinished, " not ended"));
  if (missing > 0) AddNote(&cell, absl::StrCat(missing, " missing"));
  if (row.failed > 0) AddNote(&cell, absl::StrCat(row.failed, " failed"));
  return cell;
}

// Has the number of sequences in place of runs, which is one.
TableCell SequencesCell(const ComparisonRow& row) {
  TableCell cell = RunsCell(row);
  cell.text = text::Grouped(row.own.n);
  return cell;
}

TableCell DivergedCell(const ComparisonRow& row) {
  return {row.diverged == 0 ? "0" : absl::StrCat(row.diverged, "/", row.n)};
}

TableCell RowDifferenceCell(const ComparisonRow& row, Scale scale, int decimals = -1) {
  TableCell cell = DifferenceCell(scale, row.difference, decimals);
  // Without any such pair the reason is in the text.
  if (!cell.text.empty() && row.pairs.converged < row.pairs.all) {
    AddNote(&cell, absl::StrCat(row.pairs.converged, " of ", row.pairs.all, " pairs"));
  }
  return cell;
}

// An exploratory row is described and not tested, and a test needs all of a row's runs.
TableCell TestCell(const ComparisonRow& row, const Number& p, bool exact) {
  if (row.withheld == Withheld::kExploratory) return {"", "", "exploratory"};
  if (row.withheld == Withheld::kUnfinished) return {"", "", "preliminary"};
  return PCell(p, exact);
}

TableCell WinsCell(const ComparisonRow& row) {
  if (!row.compared()) return {};
  return {absl::StrCat(text::Grouped(row.pairs.wins), "/", text::Grouped(row.pairs.all)), "",
          row.pairs.ties > 0 ? Counted(row.pairs.ties, "tie") : ""};
}

// Makes a cell of a time or a speed: a whole number from a hundred on.
TableCell CostCell(const Number& cost) {
  if (!cost.defined() || cost.value < 100) return NumberCell(cost);
  return {text::Grouped(std::llround(cost.value))};
}

// Adds columns over the rows of one comparison.
class Builder {
 public:
  using CellOf = std::function<TableCell(const ComparisonRow& row)>;

  explicit Builder(const Comparison& comparison) : comparison_(comparison) {
    table_.note = PreliminaryText(comparison);
    if (table_.note.empty() && !comparison.exploratory.empty()) {
      table_.note = absl::StrCat("exploratory: ", comparison.exploratory);
    }
    for (const ComparisonRow& row : comparison.rows) table_.baselines.push_back(row.is_baseline);
  }

  // Sets the group of the following columns.
  void Group(std::string group) { group_ = std::move(group); }

  Column& Add(std::string title, bool number, const CellOf& cell) {
    Column& column =
        table_.columns.emplace_back(ColumnOf(std::move(title), number, comparison_.rows, cell));
    column.group = group_;
    return column;
  }

  // Leaves the column out, and returns null, if no row has a text in it.
  Column* AddIfAny(std::string title, bool number, const CellOf& cell) {
    Column& column = Add(std::move(title), number, cell);
    const bool empty = std::all_of(column.cells.begin(), column.cells.end(),
                                   [](const TableCell& one) { return one.text.empty(); });
    if (!empty) return &column;
    table_.columns.pop_back();
    return nullptr;
  }

  // Does the same for a number about pairs, which a baseline doesn't have.
  Column* AddOfPairs(std::string title, const CellOf& cell) {
    return AddIfAny(std::move(title), true, [&cell](const ComparisonRow& row) {
      return row.is_baseline ? TableCell() : cell(row);
    });
  }

  void AddSettings(const std::string& baseline) {
    const std::string axes = absl::StrJoin(comparison_.row_axes, ", ");
    Add(axes.empty() ? "setting" : axes, false, [&baseline](const ComparisonRow& row) {
      return TableCell{row.label, "", row.is_baseline ? baseline : ""};
    });
  }

  Column& AddDifference(std::string title) {
    Column& column =
        Add(std::move(title), false,
            [scale = comparison_.scale,
             decimals = DifferenceDecimals(comparison_)](const ComparisonRow& row) {
              return row.is_baseline ? TableCell() : RowDifferenceCell(row, scale, decimals);
            });
    column.leads = true;
    return column;
  }

  Column* AddHolm() {
    return AddOfPairs(
        "p (Holm)", [](const ComparisonRow& row) { return TestCell(row, row.p_holm, row.exact); });
  }

  // Leaves wins out if neither direction is better.
  Column* AddWins() {
    return comparison_.better == Better::kNeither ? nullptr : AddIfAny("wins", true, WinsCell);
  }

  Table Take() { return std::move(table_); }

 private:
  const Comparison& comparison_;
  std::string group_;
  Table table_;
};

// Lets callers choose a column, which may be null.
void Name(Column* column, absl::string_view id) {
  if (column != nullptr) column->id = std::string(id);
}

std::string DifferenceTitle(Scale scale) {
  return scale == Scale::kRatio ? "ratio [95 % CI]" : "\u0394 [95 % CI]";
}

// Returns "held-out loss at step 100".
std::string MetricAtText(const Comparison& comparison) {
  return absl::StrCat(comparison.Metric().text,
                      comparison.at.has_value() ? absl::StrCat(" at step ", *comparison.at) : "");
}

// Returns true if all rows have the same number of runs with a result.
bool SameCounts(const Comparison& comparison) {
  return std::all_of(comparison.rows.begin(), comparison.rows.end(),
                     [&](const ComparisonRow& row) { return row.n == comparison.rows[0].n; });
}

// Returns "held-out loss at step 100, higher is better, each at its selected lr".
std::string Heading(const Comparison& comparison) {
  std::string heading = MetricAtText(comparison);
  if (comparison.better == Better::kHigher) absl::StrAppend(&heading, ", higher is better");
  return absl::StrCat(heading, TunedText(comparison));
}

// Returns a cell at shared tuned values: the mean of a baseline, the difference of another row.
TableCell MatchedCell(Scale scale, const MatchedBlock& block, const std::string& label) {
  const auto row = std::find_if(block.rows.begin(), block.rows.end(),
                                [&label](const ComparisonRow& one) { return one.label == label; });
  if (row == block.rows.end()) return {"", "", "not in the grid"};
  TableCell cell = row->compared() ? RowDifferenceCell(*row, scale)
                                   : MeanCell(row->mean, row->interval, -1, scale);
  if (!row->compared() && !row->is_baseline) AddNote(&cell, "mean; no baseline here");
  if (row->diverged > 0) {
    AddNote(&cell, absl::StrCat(row->diverged, " of ", row->n, " diverged"));
  }
  return cell;
}

}  // namespace

Table MainTable(const Comparison& comparison) {
  const Scale scale = comparison.scale;
  const bool by_sequence = comparison.unit != Unit::kSeed;
  Builder table(comparison);
  table.AddSettings("baseline");
  table.Group("Runs");
  Name(table.AddIfAny("parameters", true, ParametersCell), "parameters");
  Name(table.AddIfAny(absl::StrCat("selected ", absl::StrJoin(comparison.tuned_axes, ", ")), false,
                      [](const ComparisonRow& row) { return TableCell{ChosenText(row)}; }),
       "chosen");
  Name(&table.Add(by_sequence ? "sequences" : "n", true, by_sequence ? SequencesCell : RunsCell),
       "n");
  Name(&table.Add("diverged", true, DivergedCell), "diverged");
  table.Group(MetricAtText(comparison));
  Name(&table.Add(absl::StrCat(MeanName(scale), " [95 % CI]"), false,
                  [scale, decimals = MeanDecimals(comparison)](const ComparisonRow& row) {
                    return MeanCell(row.mean, row.interval, decimals, scale);
                  }),
       "mean");
  table.Group(absl::StrCat("Paired ", scale == Scale::kRatio ? "ratio" : "difference", " to ",
                           BaselineName(comparison), by_sequence ? ", by sequence" : ""));
  Name(&table.AddDifference(DifferenceTitle(scale)), "difference");
  Name(table.AddOfPairs("p (sign flip)",
                        [](const ComparisonRow& row) {
                          return TestCell(row, row.difference.p_sign_flip, row.difference.exact);
                        }),
       "p_sign_flip");
  Name(table.AddHolm(), "p_holm");
  Name(table.AddOfPairs(
           "Cohen d_z",
           [](const ComparisonRow& row) { return PairNumberCell(row.difference.effect, true); }),
       "effect");
  Name(table.AddWins(), "wins");
  Name(table.AddOfPairs("Pearson r",
                        [](const ComparisonRow& row) {
                          return PairNumberCell(row.difference.correlation, false);
                        }),
       "correlation");
  table.Group("Cost of a run");
  Name(table.AddIfAny("device-s", true,
                      [](const ComparisonRow& row) { return CostCell(row.device_seconds); }),
       "device_seconds");
  Name(table.AddIfAny("tokens/s", true,
                      [](const ComparisonRow& row) { return CostCell(row.tokens_per_second); }),
       "tokens_per_second");
  return table.Take();
}

Table WithColumns(const Table& table, const std::vector<std::string>& ids) {
  Table chosen = table;
  chosen.columns.resize(1);
  for (const std::string& id : ids) {
    for (const Column& column : table.columns) {
      if (column.id == id) chosen.columns.push_back(column);
    }
  }
  return chosen;
}

Table BriefTable(const Comparison& comparison) {
  const Scale scale = comparison.scale;
  Builder table(comparison);
  size_t widest = 0;
  for (const ComparisonRow& row : comparison.rows)
    widest = std::max(widest, text::CountCharacters(row.label));
  table.Add(Heading(comparison), false, [&](const ComparisonRow& row) {
    const std::string space(widest - text::CountCharacters(row.label), ' ');
    return TableCell{absl::StrCat(row.label, space, "  ", ChosenText(row, comparison.tuned_axes))};
  });
  if (!SameCounts(comparison)) table.Add("n", true, RunsCell);
  table.Add(std::string(MeanName(scale)), false,
            [scale, decimals = MeanDecimals(comparison)](const ComparisonRow& row) {
              TableCell cell = MeanCell(row.mean, row.interval, decimals, scale);
              if (!cell.text.empty()) cell = {cell.text};
              return cell;
            });
  table.AddDifference(absl::StrCat(scale == Scale::kRatio ? "ratio to " : "\u0394 vs ",
                                   BaselineName(comparison), " [95 % CI]"));
  table.AddHolm();
  table.AddWins();
  table.Add("diverged", true, DivergedCell);
  return table.Take();
}

Table MatchedTable(const Comparison& comparison) {
  constexpr size_t kMaxCells = 3000;
  Builder builder(comparison);
  builder.AddSettings("baseline: its mean");
  Table table = builder.Take();
  const bool all = comparison.matched.size() * comparison.rows.size() <= kMaxCells;
  table.note = all ? "" : "only the reference is shown: the table is long";
  for (size_t i = 0; i < comparison.matched.size(); ++i) {
    const MatchedBlock& block = comparison.matched[i];
    const bool reference = i == comparison.reference;
    if (!all && !reference) continue;
    table.columns.push_back(ColumnOf(
        absl::StrCat(absl::StrJoin(block.labels, ", "), reference ? " (reference)" : ""), true,
        comparison.rows,
        [&](const ComparisonRow& row) { return MatchedCell(comparison.scale, block, row.label); }));
  }
  return table;
}

Table SelectionTable(const Comparison& comparison) {
  Builder table(comparison);
  table.AddSettings("baseline");
  for (size_t axis = 0; axis < comparison.tuned_axes.size(); ++axis) {
    const auto seeds = [axis](const ComparisonRow& row, const std::string& label) {
      size_t count = 0;
      for (const Choice& choice : row.chosen) {
        if (choice.labels[axis] == label) count += choice.seeds;
      }
      return count;
    };
    const std::vector<std::string>& labels = comparison.tuned_labels[axis];
    const auto selected = [&](const std::string& label) {
      return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                         [&](const ComparisonRow& row) { return seeds(row, label) > 0; });
    };
    const auto first = std::find_if(labels.begin(), labels.end(), selected);
    const auto end = std::find_if(labels.rbegin(), labels.rend(), selected).base();
    if (end - first < 2) continue;
    table.Group(absl::StrCat("seeds by selected ", comparison.tuned_axes[axis]));
    for (auto label = first; label != end; ++label) {
      table.Add(*label, true, [&](const ComparisonRow& row) {
        const size_t count = seeds(row, *label);
        return TableCell{count == 0 ? "" : absl::StrCat(count)};
      });
    }
  }
  Table taken = table.Take();
  taken.note.clear();  // it is above the accompanying comparison
  return taken;
}

Table WindowTable(const Comparison& comparison, const RowWindows& windows) {
  Builder builder(comparison);
  builder.AddSettings("");
  Table table = builder.Take();
  table.note.clear();  // it is above the accompanying comparison
  for (size_t i = 0; i < windows.windows.size(); ++i) {
    std::vector<ColumnNumber> numbers;
    for (const auto& row : windows.rows)
      numbers.push_back({row[i].over.mean, row[i].over.interval});
    table.columns.push_back(ColumnOf(WindowName(windows.windows[i], comparison.source), false,
                                     windows.rows,
                                     [i, decimals = ColumnDecimals(numbers)](const auto& row) {
                                       return SampleCell(row[i].over, row[i].left_out, decimals);
                                     }));
  }
  return table;
}

Table FactorialTable(const Comparison& comparison) {
  const Factorial& factorial = comparison.factorial;
  std::vector<Effect> effects = factorial.main;
  effects.insert(effects.end(), factorial.interactions.begin(), factorial.interactions.end());
  Table table;
  const auto add = [&](std::string title, bool number, const auto& cell) {
    table.columns.push_back(ColumnOf(std::move(title), number, effects, cell));
  };
  add("effect", false, [](const Effect& effect) { return TableCell{EffectText(effect)}; });
  add("combinations", true,
      [](const Effect& effect) { return TableCell{absl::StrCat(effect.combinations)}; });
  add("n", true, [](const Effect& effect) { return TableCell{absl::StrCat(effect.difference.n)}; });
  const Scale scale = comparison.scale;
  add(DifferenceTitle(scale), false,
      [scale, decimals = EffectDecimals(scale, factorial)](const Effect& effect) {
        return DifferenceCell(scale, effect.difference, decimals);
      });
  if (!comparison.tuned_axes.empty()) return table;
  add("p (sign flip)", true, [](const Effect& effect) {
    return PCell(effect.difference.p_sign_flip, effect.difference.exact);
  });
  add("p (Holm)", true,
      [](const Effect& effect) { return PCell(effect.p_holm, effect.difference.exact); });
  return table;
}

namespace {

// Returns as many rows as fit a terminal.
Table FirstRows(Table table) {
  constexpr size_t kMaxRows = 40;
  const size_t rows = table.columns[0].cells.size();
  if (rows <= kMaxRows) return table;
  for (Column& column : table.columns) column.cells.resize(kMaxRows);
  table.note = absl::StrCat("the first ", kMaxRows, " of ", rows, "; all are in --json");
  return table;
}

}  // namespace

std::string ComparisonText(const Comparison& comparison, const std::vector<Finding>& findings,
                           const RowWindows& windows) {
  std::string out = RenderText(BriefTable(comparison));
  const auto line = [&out](absl::string_view label, const std::string& sentence) {
    if (!sentence.empty()) absl::StrAppend(&out, label, text::CleanText(sentence), "\n");
  };
  line("", MatchedNote(comparison, findings));
  out.push_back('\n');
  line("", OverallVerdict(comparison, findings).text);
  for (const Warning& warning : comparison.warnings) {
    // It concerns columns of the main table, which this text doesn't have.
    if (warning.kind != WarningKind::kContendedThroughput) line("warning: ", warning.text);
  }
  line("note: ", UnitNote(comparison));
  line("note: ", WithinNote(comparison));
  line("note: ", MeansNote(comparison));
  line("note: ", DivergedNote(comparison));
  if (!comparison.tuned_axes.empty() && comparison.family > 0) {
    line("note: ",
         absl::StrCat(
             "each ", absl::StrJoin(comparison.tuned_axes, " and "),
             " is selected by leave-one-seed-out",
             comparison.choice_key.empty() ? ""
                                           : absl::StrCat(" on ", comparison.ChoiceMetric().text),
             IsReselected(comparison) ? "; the permutation test repeats the selection" : ""));
  }
  if (const Table table = SelectionTable(comparison); table.columns.size() > 1) {
    absl::StrAppend(&out, "\n", RenderText(FirstRows(table)));
  }
  if (!comparison.factorial.main.empty()) {
    absl::StrAppend(&out, "\ncrossed axes:\n", RenderText(FirstRows(FactorialTable(comparison))));
  }
  if (!windows.windows.empty()) {
    absl::StrAppend(&out, "\ncurve summaries over converged runs, mean [95 % CI]:\n",
                    RenderText(WindowTable(comparison, windows)));
  }
  return out;
}

}  // namespace ablate::report
