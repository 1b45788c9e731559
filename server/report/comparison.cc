// Compare: choose the tuned values, build the rows, adjust their p values, match, warn.
#include "server/report/comparison.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "server/report/grid.h"
#include "server/report/row.h"
#include "server/report/warnings.h"

namespace ablate::report {
namespace {

Selection SelectRow(const GridRow& row, Better better) {
  std::vector<Trial> trials;
  for (const Cell* cell : row.cells) trials.push_back(TrialOf(cell));
  return LeaveOneSeedOut(trials, row.candidates.size(), row.seeds.size(), better);
}

bool Stops(const CompareOptions& options) { return options.cancelled && options.cancelled(); }

// Says which rows get no verdict; `grid_rows` are by row.
void Withhold(const std::vector<GridRow>& grid_rows, std::vector<ComparisonRow>* rows) {
  for (size_t i = 0; i < rows->size(); ++i) {
    ComparisonRow& row = (*rows)[i];
    if (!row.baseline.has_value() || *row.baseline == i) continue;
    const ComparisonRow& baseline = (*rows)[*row.baseline];
    row.scored_differently = ScoredDifferently(grid_rows[i], grid_rows[*row.baseline]);
    if (!row.scored_differently.empty()) {
      row.withheld = Withheld::kScoredDifferently;
    } else if (row.unfinished + baseline.unfinished > 0) {
      row.withheld = Withheld::kUnfinished;
    }
  }
}

// Compares each row with its baseline; `runs` are by row. `baselines` index both. Leaves off where
// it is cancelled.
void CompareRows(const std::vector<std::vector<PickedRun>>& runs, Better better,
                 const CompareOptions& options, std::vector<ComparisonRow>* rows) {
  for (size_t i = 0; i < rows->size() && !Stops(options); ++i) {
    ComparisonRow& row = (*rows)[i];
    row.is_baseline = row.baseline == i;
    if (row.is_baseline) {
      row.difference = NoPairs(Undefined::kIsBaseline);
      row.p_holm = NoNumber(Undefined::kIsBaseline);
    } else if (row.baseline.has_value()) {
      CompareRow(runs[i], runs[*row.baseline], better, options.resamples, &row);
    }
  }
}

// Adjusts the sign-flip p values of all rows that can be judged as one family; returns its size.
size_t AdjustFamily(const std::vector<ComparisonRow*>& rows) {
  std::vector<ComparisonRow*> family;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(family),
               [](const ComparisonRow* row) { return row->in_family(); });
  std::vector<Number> p;
  p.reserve(family.size());
  for (const ComparisonRow* row : family) p.push_back(row->difference.p_sign_flip);
  const std::vector<Number> adjusted = HolmAdjust(p);
  for (size_t i = 0; i < family.size(); ++i) family[i]->p_holm = adjusted[i];
  for (ComparisonRow* row : rows) {
    if (row->compared() && !row->in_family()) {
      row->p_holm = NoNumber(Undefined::kScoredDifferently);
    }
  }
  return family.size();
}

// The cells of one candidate of a row, as a row of its own.
GridRow OnlyCandidate(const GridRow& row, size_t candidate) {
  GridRow only;
  only.labels = row.labels;
  only.candidates = {row.candidates[candidate]};
  for (size_t i = 0; i < row.seeds.size(); ++i) {
    const Cell* cell = row.cells[candidate * row.seeds.size() + i];
    if (cell == nullptr) continue;
    only.seeds.push_back(row.seeds[i]);
    only.cells.push_back(cell);
  }
  return only;
}

MatchedBlock MatchAt(const ComparisonInput& input, const Grid& grid,
                     const std::vector<size_t>& candidate, const CompareOptions& options) {
  MatchedBlock block;
  block.labels = LabelsAt(input, grid.tuned_axes, candidate);
  std::map<size_t, size_t> position;  // of a grid row in the block
  std::vector<GridRow> rows;
  std::vector<std::optional<size_t>> baselines;
  for (size_t i = 0; i < grid.rows.size(); ++i) {
    const auto& candidates = grid.rows[i].candidates;
    const auto found = std::find(candidates.begin(), candidates.end(), candidate);
    if (found == candidates.end()) continue;
    position[i] = rows.size();
    baselines.push_back(grid.rows[i].baseline);
    rows.push_back(OnlyCandidate(grid.rows[i], static_cast<size_t>(found - candidates.begin())));
  }
  std::vector<std::vector<PickedRun>> runs;
  for (size_t i = 0; i < rows.size(); ++i) {
    runs.push_back(RunsOf(rows[i], std::vector<std::optional<size_t>>(rows[i].seeds.size(), 0)));
    block.rows.push_back(DescribeRow(input, grid, rows[i], runs[i]));
    if (!baselines[i].has_value() || position.count(*baselines[i]) == 0) continue;
    block.rows[i].baseline = position[*baselines[i]];
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<size_t> baseline = block.rows[i].baseline;
    if (baseline.has_value()) block.rows[i].changed = ChangedPaths(rows[i], rows[*baseline]);
  }
  CompareRows(runs, input.better, {options.cancelled, 0}, &block.rows);
  Withhold(rows, &block.rows);
  return block;
}

std::vector<MatchedBlock> MatchAll(const ComparisonInput& input, const Grid& grid,
                                   const CompareOptions& options) {
  std::vector<std::vector<size_t>> candidates;
  for (const GridRow& row : grid.rows) {
    candidates.insert(candidates.end(), row.candidates.begin(), row.candidates.end());
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<MatchedBlock> blocks;
  blocks.reserve(candidates.size());
  for (const auto& candidate : candidates) {
    if (Stops(options)) break;
    blocks.push_back(MatchAt(input, grid, candidate, options));
  }
  std::vector<ComparisonRow*> rows;
  for (MatchedBlock& block : blocks) {
    for (ComparisonRow& row : block.rows) rows.push_back(&row);
  }
  AdjustFamily(rows);
  return blocks;
}

// The block at the base spec's own tuned values; else at what the first baseline chose most often.
std::optional<size_t> ReferenceBlock(const ComparisonInput& input, const Grid& grid,
                                     const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const size_t axis : grid.tuned_axes) labels.push_back(input.axes[axis].base.value_or(""));
  const auto at = [&](const std::vector<std::string>& wanted) -> std::optional<size_t> {
    for (size_t i = 0; i < comparison.matched.size(); ++i) {
      if (comparison.matched[i].labels == wanted) return i;
    }
    return std::nullopt;
  };
  if (const std::optional<size_t> block = at(labels); block.has_value()) return block;
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.is_baseline || row.chosen.empty()) continue;
    return at(std::max_element(row.chosen.begin(), row.chosen.end(),
                               [](const Choice& a, const Choice& b) { return a.seeds < b.seeds; })
                  ->labels);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Comparison> Compare(const ComparisonInput& input, const CompareOptions& options) {
  const absl::StatusOr<Grid> grid = ArrangeCells(input);
  if (!grid.ok()) return grid.status();
  Comparison comparison;
  comparison.key = input.key;
  comparison.better = input.better;
  for (const size_t axis : grid->row_axes) comparison.row_axes.push_back(input.axes[axis].name);
  for (const size_t axis : grid->tuned_axes) comparison.tuned_axes.push_back(input.axes[axis].name);
  for (const size_t axis : grid->within_axes) {
    comparison.within_axes.push_back(input.axes[axis].name);
  }
  comparison.planned = input.cells.size();

  std::vector<Selection> selections;
  std::vector<std::vector<PickedRun>> runs;
  for (const GridRow& row : grid->rows) {
    selections.push_back(SelectRow(row, input.better));
    runs.push_back(RunsOf(row, selections.back().picks));
    comparison.rows.push_back(DescribeRow(input, *grid, row, runs.back()));
    comparison.rows.back().baseline = row.baseline;
    if (row.baseline.has_value()) {
      comparison.rows.back().changed = ChangedPaths(row, grid->rows[*row.baseline]);
    }
  }
  CompareRows(runs, input.better, options, &comparison.rows);
  Withhold(grid->rows, &comparison.rows);
  std::vector<ComparisonRow*> rows;
  comparison.ended = comparison.planned;
  for (ComparisonRow& row : comparison.rows) {
    rows.push_back(&row);
    comparison.ended -= row.unfinished;
  }
  comparison.family = AdjustFamily(rows);
  if (!grid->tuned_axes.empty()) {
    comparison.matched = MatchAll(input, *grid, options);
    comparison.reference = ReferenceBlock(input, *grid, comparison);
  }
  if (Stops(options)) return absl::CancelledError("the call was cancelled");
  comparison.warnings = FindWarnings(input, *grid, selections, runs, comparison);
  return comparison;
}

}  // namespace ablate::report
