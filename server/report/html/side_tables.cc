// The tables beside the main one: settings at shared values of the tuned axes, windows of curves.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/html/cells.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::ComparisonRow;
using report::MatchedBlock;

constexpr size_t kMostMatchedCells = 3000;

// The blocks that are shown: all, or where the table would be too long the reference alone.
std::vector<size_t> ShownBlocks(const Comparison& comparison) {
  std::vector<size_t> blocks(comparison.matched.size());
  std::iota(blocks.begin(), blocks.end(), size_t{0});
  if (blocks.size() * comparison.rows.size() <= kMostMatchedCells) return blocks;
  if (comparison.reference.has_value()) return {*comparison.reference};
  return {};
}

// What a row is in a block: a baseline's mean, another's difference, each with its interval.
TableCell MatchedCell(const MatchedBlock& block, const std::string& label) {
  const auto row = std::find_if(block.rows.begin(), block.rows.end(),
                                [&label](const ComparisonRow& one) { return one.label == label; });
  if (row == block.rows.end()) return {"", "not in the grid"};
  TableCell cell = row->compared() ? DifferenceCell(row->difference.mean, row->difference.interval)
                                   : MeanCell(row->mean, row->interval);
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
    titles.push_back(absl::StrCat(absl::StrJoin(comparison.matched[block].labels, ", "),
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
      WriteCell(MatchedCell(comparison.matched[block], row.label), out);
    }
    out->Close();
  }
  out->Close();
}

}  // namespace

void MatchedTable(const Place& place, const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  const std::vector<size_t> blocks = ShownBlocks(comparison);
  if (blocks.empty()) return;
  const std::string axes = absl::StrJoin(comparison.tuned_axes, " and ");
  Subheading(place, absl::StrCat("At one shared ", axes), out);
  OpenScroll(absl::StrCat("Comparison at one shared ", axes), out);
  out->Open("table");
  Caption(absl::StrCat(
              "Paired difference to the baseline and its 95 % interval where both have the same ",
              axes, ", one column a value; of a baseline the mean.",
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

namespace {

TableCell WindowCell(const WindowColumn::Entry& entry) {
  TableCell cell = MeanCell(entry.mean, entry.interval);
  if (entry.left_out > 0) {
    absl::StrAppend(&cell.below, cell.below.empty() ? "" : "; ", entry.n, " of ",
                    entry.n + entry.left_out);
  }
  return cell;
}

}  // namespace

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
  for (const WindowColumn& window : experiment.windows) titles.push_back(window.title);
  out->Open("thead");
  HeadRow(titles, out);
  out->Close().Open("tbody");
  for (size_t row = 0; row < experiment.comparison.rows.size(); ++row) {
    out->Open("tr").Element("th", {{"scope", "row"}}, experiment.comparison.rows[row].label);
    for (const WindowColumn& window : experiment.windows) {
      WriteCell(WindowCell(window.entries[row]), out);
    }
    out->Close();
  }
  out->Close().Close().Close();
}

}  // namespace ablate::html
