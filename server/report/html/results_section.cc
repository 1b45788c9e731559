#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"
#include "server/report/table/cells.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;
using report::MatchedBlock;

struct Column {
  std::string group, title;
  std::function<TableCell(const ComparisonRow&)> cell;
  bool optional = false;  // left out where no row has anything to say in it
  bool leads = false;     // what a list of the row begins with
};

TableCell ChosenCell(const ComparisonRow& row) { return {report::ChosenText(row), ""}; }

TableCell ParametersCell(const ComparisonRow& row) {
  if (!row.parameters.has_value()) return {};
  if (row.parameters->low == row.parameters->high) return {text::Grouped(row.parameters->low), ""};
  return {
      absl::StrCat(text::Grouped(row.parameters->low), "–", text::Grouped(row.parameters->high)),
      ""};
}

TableCell RunsCell(const ComparisonRow& row) {
  TableCell cell = {absl::StrCat(row.n), ""};
  std::vector<std::string> without;
  if (row.unfinished > 0) without.push_back(absl::StrCat(row.unfinished, " not ended"));
  const size_t missing = row.missing - row.unfinished;
  if (missing > 0) without.push_back(absl::StrCat(missing, " missing"));
  if (row.failed > 0) without.push_back(absl::StrCat(row.failed, " failed"));
  cell.below = absl::StrJoin(without, ", ");
  return cell;
}

TableCell PairedMeanCell(const ComparisonRow& row, report::Scale scale, int decimals) {
  TableCell cell = MeanCell(row.mean, row.interval, decimals, scale);
  // Without any such pair the mean is the row's own.
  if (row.pairs.converged > 0 && row.pairs.converged < row.pairs.all) {
    absl::StrAppend(&cell.below, cell.below.empty() ? "" : "; ", row.pairs.converged, " of ",
                    row.pairs.all);
  }
  return cell;
}

TableCell WinsCell(const ComparisonRow& row) {
  if (!row.compared()) return {};
  TableCell cell = {absl::StrCat(row.pairs.wins, "/", row.pairs.all), ""};
  if (row.pairs.ties > 0) cell.below = report::Counted(row.pairs.ties, "tie");
  return cell;
}

TableCell TokensCell(const ComparisonRow& row) {
  if (!row.tokens_per_second.defined()) return {};
  return {text::Grouped(std::llround(row.tokens_per_second.value)), ""};
}

// A number about the difference with the baseline, which has none.
std::function<TableCell(const ComparisonRow&)> OfPairs(TableCell (*cell)(const ComparisonRow&)) {
  return [cell](const ComparisonRow& row) { return row.compared() ? cell(row) : TableCell(); };
}

std::vector<Column> RunColumns(const Comparison& comparison) {
  std::vector<Column> columns = {{"Runs", "parameters", ParametersCell, true}};
  if (!comparison.tuned_axes.empty()) {
    const std::string axes = absl::StrJoin(comparison.tuned_axes, ", ");
    columns.push_back({"Runs", absl::StrCat("chosen ", axes), ChosenCell, false});
  }
  columns.push_back({"Runs", "n", RunsCell, false});
  columns.push_back({"Runs", "diverged",
                     [](const ComparisonRow& row) {
                       return TableCell{report::DivergedCell(row), ""};
                     },
                     false});
  return columns;
}

// With a sign, as the difference that it is of.
TableCell EffectCell(const report::Number& effect) {
  if (!effect.defined()) return PairNumberCell(effect);
  return {report::Signed(effect.value, 2), ""};
}

// What was not planned is described and not tested; a p of some of the runs is none.
TableCell JudgedPCell(const ComparisonRow& row, const report::Number& p) {
  if (row.withheld == report::Withheld::kExploratory) return {"", "exploratory"};
  if (row.withheld == report::Withheld::kUnfinished) return {"", "preliminary"};
  return PCell(p);
}

absl::string_view DifferenceTitle(const Comparison& comparison) {
  return comparison.scale == report::Scale::kRatio ? "ratio" : "Δ";
}

// Setting, runs, metric, paired difference, costs.
std::vector<Column> MainColumns(const Comparison& comparison) {
  std::vector<Column> columns = RunColumns(comparison);
  const int means = report::MeanDecimals(comparison);
  const int differences = report::DifferenceDecimals(comparison);
  const bool ratio = comparison.scale == report::Scale::kRatio;
  const std::string paired =
      absl::StrCat("Paired ", ratio ? "ratio" : "difference", " to the baseline");
  const std::vector<Column> more = {
      {report::NameOfMetric(comparison.key).text,
       absl::StrCat(report::MeanName(comparison.scale), " [95 % CI]"),
       [means, scale = comparison.scale](const ComparisonRow& row) {
         return PairedMeanCell(row, scale, means);
       },
       false},
      {paired, absl::StrCat(DifferenceTitle(comparison), " [95 % CI]"),
       [differences, scale = comparison.scale](const ComparisonRow& row) {
         if (!row.compared()) return TableCell();
         return DifferenceCell(scale, row.difference, differences);
       },
       false, true},
      {paired, "p (sign flip)", OfPairs([](const ComparisonRow& row) {
         TableCell cell = JudgedPCell(row, row.difference.p_sign_flip);
         if (cell.text.empty()) return cell;
         if (row.difference.p_sign_flip.defined() && !row.difference.exact) cell.below = "sampled";
         return cell;
       }),
       false},
      {paired, "p (Holm)",
       OfPairs([](const ComparisonRow& row) { return JudgedPCell(row, row.p_holm); }), false},
      {paired, "effect d_z",
       OfPairs([](const ComparisonRow& row) { return EffectCell(row.difference.effect); }), false},
      {paired, "wins", WinsCell, false},
      {paired, "r of pairs",
       OfPairs([](const ComparisonRow& row) { return PairNumberCell(row.difference.correlation); }),
       false},
      {"Cost of a run", "device-s",
       [](const ComparisonRow& row) { return NumberCell(row.device_seconds); }, true},
      {"Cost of a run", "tokens/s", TokensCell, true},
  };
  columns.insert(columns.end(), more.begin(), more.end());
  const bool nobody_wins = comparison.better == report::Better::kNeither;
  const auto silent = [&comparison, nobody_wins](const Column& column) {
    if (nobody_wins && column.title == "wins") return true;
    return column.optional && std::all_of(comparison.rows.begin(), comparison.rows.end(),
                                          [&column](const ComparisonRow& row) {
                                            return column.cell(row).text.empty();
                                          });
  };
  columns.erase(std::remove_if(columns.begin(), columns.end(), silent), columns.end());
  return columns;
}

// Two lines of heads: groups, then columns.
void WriteHeads(const std::vector<Column>& columns, Markup* out) {
  out->Open("thead").Open("tr");
  out->Element("th", {{"scope", "col"}, {"rowspan", "2"}}, "setting");
  for (size_t from = 0; from < columns.size();) {
    size_t to = from;
    while (to < columns.size() && columns[to].group == columns[from].group) ++to;
    out->Element("th",
                 {{"scope", "colgroup"}, {"class", "group"}, {"colspan", absl::StrCat(to - from)}},
                 columns[from].group);
    from = to;
  }
  out->Close();
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);
  HeadRow(titles, out);
  out->Close();
}

// A colgroup a group, which scope="colgroup" is about.
void WriteColumnGroups(const std::vector<Column>& columns, Markup* out) {
  out->Open("colgroup").Close();
  for (size_t from = 0; from < columns.size();) {
    size_t to = from;
    while (to < columns.size() && columns[to].group == columns[from].group) ++to;
    out->Open("colgroup", {{"span", absl::StrCat(to - from)}}).Close();
    from = to;
  }
}

void WriteRows(const std::vector<ComparisonRow>& rows, const std::vector<Column>& columns,
               Markup* out) {
  for (const ComparisonRow& row : rows) {
    out->Open("tr", {{"class", row.is_baseline ? "baseline" : "compared"}});
    out->Open("th", {{"scope", "row"}}).Text(row.label);
    if (row.is_baseline) out->Element("small", "baseline");
    out->Close();
    for (const Column& column : columns) {
      WriteCell(column.cell(row), column.title, column.leads, out);
    }
    out->Close();
  }
}

void MainTable(const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  const std::vector<Column> columns = MainColumns(comparison);
  OpenScroll("Main table", out);
  out->Open("table", {{"class", "main"}});
  const std::string chosen =
      comparison.tuned_axes.empty()
          ? ""
          : absl::StrCat(", each setting at the ", absl::StrJoin(comparison.tuned_axes, ", "),
                         " chosen on its other seeds");
  const std::string read = absl::StrCat(report::NameOfMetric(comparison.key).text, ", read ",
                                        experiment.read_at, chosen);
  Caption(absl::StrCat(report::Together({read, report::MeansNote(comparison)}, "; "), "."), out);
  WriteColumnGroups(columns, out);
  WriteHeads(columns, out);
  out->Open("tbody");
  WriteRows(comparison.rows, columns, out);
  out->Close().Close().Close();
}

constexpr size_t kMaxMatchedCells = 3000;

// The blocks that are shown: all, or where the table would be too long the reference alone.
std::vector<size_t> ShownBlocks(const Comparison& comparison) {
  std::vector<size_t> blocks(comparison.matched.size());
  std::iota(blocks.begin(), blocks.end(), size_t{0});
  if (blocks.size() * comparison.rows.size() <= kMaxMatchedCells) return blocks;
  if (comparison.reference.has_value()) return {*comparison.reference};
  return {};
}

// What a row is in a block: a baseline's mean, another's difference, each with its interval.
TableCell MatchedCell(report::Scale scale, const MatchedBlock& block, const std::string& label) {
  const auto row = std::find_if(block.rows.begin(), block.rows.end(),
                                [&label](const ComparisonRow& one) { return one.label == label; });
  if (row == block.rows.end()) return {"", "not in the grid"};
  TableCell cell = row->compared() ? DifferenceCell(scale, row->difference)
                                   : MeanCell(row->mean, row->interval, -1, scale);
  const auto add = [&cell](size_t count, size_t of, absl::string_view what) {
    absl::StrAppend(&cell.below, cell.below.empty() ? "" : "; ", count, " of ", of, " ", what);
  };
  if (row->diverged > 0) add(row->diverged, row->n, "diverged");
  const bool any = row->pairs.converged > 0;  // else the reason says it
  if (any && row->pairs.converged < row->pairs.all) {
    add(row->pairs.converged, row->pairs.all, "pairs");
  }
  return cell;
}

std::vector<std::string> MatchedTitles(const Comparison& comparison,
                                       const std::vector<size_t>& blocks) {
  std::vector<std::string> titles = {"setting"};
  for (const size_t block : blocks) {
    titles.push_back(absl::StrCat(report::ShownValues(comparison.matched[block].labels),
                                  block == comparison.reference ? " (reference)" : ""));
  }
  return titles;
}

void MatchedRows(const Comparison& comparison, const std::vector<size_t>& blocks, Markup* out) {
  out->Open("tbody");
  for (const ComparisonRow& row : comparison.rows) {
    out->Open("tr", {{"class", row.is_baseline ? "baseline" : "compared"}});
    out->Open("th", {{"scope", "row"}}).Text(row.label);
    if (row.is_baseline) out->Element("small", "baseline: its mean");
    out->Close();
    for (const size_t block : blocks) {
      WriteCell(MatchedCell(comparison.scale, comparison.matched[block], row.label), out);
    }
    out->Close();
  }
  out->Close();
}

// Each setting at each shared combination of tuned values; nothing where nothing is tuned.
void MatchedTable(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  const std::vector<size_t> blocks = ShownBlocks(comparison);
  const bool ratio = comparison.scale == report::Scale::kRatio;
  if (blocks.empty()) return;
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  Subheading(place, absl::StrCat("At one shared ", axes), out);
  OpenScroll(absl::StrCat("Comparison at one shared ", axes), out);
  out->Open("table");
  Caption(absl::StrCat("Paired ", ratio ? "ratio" : "difference",
                       " to the baseline and its 95 % interval where both have the same ", axes,
                       ", one column a value; of a baseline the ",
                       report::MeanName(comparison.scale), ".",
                       comparison.reference.has_value()
                           ? " The reference is the base spec's own value, or else the baseline's "
                             "usual choice."
                           : "",
                       blocks.size() < comparison.matched.size()
                           ? " Only the reference is shown: the table is long."
                           : ""),
          out);
  out->Open("thead");
  HeadRow(MatchedTitles(comparison, blocks), out);
  out->Close();
  MatchedRows(comparison, blocks, out);
  out->Close().Close();
}

TableCell WindowCell(const WindowColumn::Entry& entry, int decimals) {
  TableCell cell = MeanCell(entry.mean, entry.interval, decimals);
  if (entry.left_out > 0) {
    absl::StrAppend(&cell.below, cell.below.empty() ? "" : "; ", entry.n, " of ",
                    entry.n + entry.left_out);
  }
  return cell;
}

// Nothing where there is no window.
void WindowTable(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.windows.empty()) return;
  Subheading(place, "Windows of curves", out);
  OpenScroll("Windows of curves", out);
  out->Open("table");
  Caption(
      "Mean and 95 % interval over the converged runs of each setting; \"4 of 6\" where the others "
      "have no such window. Exploratory: the verdict is about the main table.",
      out);
  std::vector<std::string> titles = {"setting"};
  std::vector<int> digits;
  for (const WindowColumn& window : experiment.windows) {
    titles.push_back(window.title);
    std::vector<report::ColumnNumber> column;
    for (const auto& entry : window.entries) column.push_back({entry.mean, entry.interval});
    digits.push_back(report::ColumnDecimals(column));
  }
  out->Open("thead");
  HeadRow(titles, out);
  out->Close().Open("tbody");
  for (size_t row = 0; row < experiment.comparison.rows.size(); ++row) {
    out->Open("tr").Element("th", {{"scope", "row"}}, experiment.comparison.rows[row].label);
    for (size_t i = 0; i < experiment.windows.size(); ++i) {
      WriteCell(WindowCell(experiment.windows[i].entries[row], digits[i]), out);
    }
    out->Close();
  }
  out->Close().Close().Close();
}

// Main effects and interactions of crossed axes; nothing where there are none.
void FactorialTable(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  const report::Factorial& factorial = comparison.factorial;
  if (factorial.main.empty()) return;
  const bool tuned = !comparison.tuned_axes.empty();
  const int decimals = report::EffectDecimals(comparison.scale, factorial);
  Subheading(place, "Crossed axes", out);
  OpenScroll("Main effects and interactions", out);
  out->Open("table");
  Caption(absl::StrCat(
              "What each setting of an axis does on average over the other axes (main effect), and "
              "by how much that changes where a second axis leaves its baseline (interaction, "
              "×), by seed",
              comparison.scale == report::Scale::kRatio
                  ? ": geometric means of ratios, and of ratios of ratios. "
                  : ". ",
              tuned ? "Values are tuned, so that a test would have to choose them again: "
                      "effects are described and not tested."
                    : "Holm over the main effects, and over the interactions."),
          out);
  out->Open("thead");
  std::vector<std::string> titles = {"effect", "combinations", "n",
                                     absl::StrCat(DifferenceTitle(comparison), " [95 % CI]")};
  if (!tuned) titles.insert(titles.end(), {"p (sign flip)", "p (Holm)"});
  HeadRow(titles, out);
  out->Close().Open("tbody");
  for (const std::vector<report::Effect>* effects : {&factorial.main, &factorial.interactions}) {
    for (const report::Effect& effect : *effects) {
      out->Open("tr").Element("th", {{"scope", "row"}}, report::EffectText(effect));
      WriteCell({absl::StrCat(effect.combinations), ""}, out);
      WriteCell({absl::StrCat(effect.difference.n), ""}, out);
      WriteCell(DifferenceCell(comparison.scale, effect.difference, decimals), out);
      if (!tuned) {
        WriteCell(PCell(effect.difference.p_sign_flip), out);
        WriteCell(PCell(effect.p_holm), out);
      }
      out->Close();
    }
  }
  out->Close().Close().Close();
}

}  // namespace

void ResultsSection(const Place& place, const Experiment& experiment, Markup* out) {
  OpenSection(place, "results", "Results", out);
  MainTable(experiment, out);
  FactorialTable(place, experiment, out);
  out->Close();
  if (experiment.comparison.matched.empty() && experiment.windows.empty()) return;
  OpenFolded(place, "more-results", "More tables", out);
  MatchedTable(place, experiment, out);
  WindowTable(place, experiment, out);
  CloseFolded(out);
}

}  // namespace ablate::html
