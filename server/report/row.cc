// Runs to rows: what a setting gave on its own, and against the baseline on the seeds they share.
#include "server/report/row.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_join.h"
#include "server/report/compensated_sum.h"

namespace ablate::report {
namespace {

bool Diverged(const PickedRun& run) { return run.trial.state == Trial::State::kDiverged; }

// The mean of a cost over the runs that recorded it.
Number MeanOfRecorded(const std::vector<PickedRun>& runs, std::optional<double> Cell::*cost) {
  std::vector<double> values;
  for (const PickedRun& run : runs) {
    if ((run.cell->*cost).has_value()) values.push_back(*(run.cell->*cost));
  }
  return values.empty() ? NoNumber(Undefined::kNotRecorded) : Mean(values);
}

std::optional<ParameterRange> ParametersOf(const std::vector<PickedRun>& runs) {
  std::optional<ParameterRange> range;
  for (const PickedRun& run : runs) {
    if (!run.cell->parameters.has_value()) continue;
    const int64_t count = *run.cell->parameters;
    if (!range.has_value()) range = ParameterRange{count, count};
    range->low = std::min(range->low, count);
    range->high = std::max(range->high, count);
  }
  return range;
}

// Counts and costs over all cells of the row, chosen or not.
void CountCells(const GridRow& row, ComparisonRow* result) {
  CompensatedSum device_seconds;
  for (const Cell* cell : row.cells) {
    if (cell == nullptr) continue;
    ++result->cells;
    result->unfinished += cell->outcome == RunOutcome::kUnfinished;
    device_seconds.Add(cell->device_seconds.value_or(0));
    if (cell->outcome == RunOutcome::kFailed) {
      ++result->failed;
    } else if (TrialOf(cell).state == Trial::State::kNone) {
      ++result->missing;
    }
  }
  result->device_seconds_all = device_seconds.Total();
}

std::vector<Choice> ChoicesOf(const ComparisonInput& input, const Grid& grid, const GridRow& row,
                              const std::vector<PickedRun>& runs) {
  std::vector<Choice> choices;
  if (grid.tuned_axes.empty()) return choices;
  for (size_t candidate = 0; candidate < row.candidates.size(); ++candidate) {
    const auto seeds = std::count_if(
        runs.begin(), runs.end(), [&](const PickedRun& run) { return run.candidate == candidate; });
    if (seeds == 0) continue;
    choices.push_back(
        {LabelsAt(input, grid.tuned_axes, row.candidates[candidate]), static_cast<size_t>(seeds)});
  }
  return choices;
}

// Who won the seed, and whether both can be subtracted.
void CountPair(const PickedRun& run, const PickedRun& baseline, Better better, Pairs* pairs) {
  ++pairs->all;
  if (Diverged(run) || Diverged(baseline)) {
    if (!Diverged(baseline)) ++pairs->only_row_diverged;
    if (!Diverged(run)) ++pairs->only_baseline_diverged;
    if (Diverged(run) && Diverged(baseline)) {
      ++pairs->ties;
    } else {
      ++(Diverged(run) ? pairs->losses : pairs->wins);
    }
    return;
  }
  ++pairs->converged;
  const double gain = better == Better::kLower ? baseline.trial.value - run.trial.value
                                               : run.trial.value - baseline.trial.value;
  ++(gain > 0 ? pairs->wins : gain < 0 ? pairs->losses : pairs->ties);
}

}  // namespace

std::vector<PickedRun> RunsOf(const GridRow& row, const std::vector<std::optional<size_t>>& picks) {
  std::vector<PickedRun> runs;
  for (size_t i = 0; i < row.seeds.size(); ++i) {
    if (!picks[i].has_value()) continue;
    const Cell* cell = row.cells[*picks[i] * row.seeds.size() + i];
    const Trial trial = TrialOf(cell);
    if (trial.state != Trial::State::kNone) runs.push_back({row.seeds[i], cell, *picks[i], trial});
  }
  return runs;
}

ComparisonRow DescribeRow(const ComparisonInput& input, const Grid& grid, const GridRow& row,
                          const std::vector<PickedRun>& runs) {
  ComparisonRow result;
  result.labels = LabelsAt(input, grid.row_axes, row.labels);
  result.label = result.labels.empty() ? "base" : absl::StrJoin(result.labels, "/");
  std::vector<double> values;
  for (const PickedRun& run : runs) {
    const bool diverged = Diverged(run);
    result.runs.push_back(
        {run.seed, diverged ? std::numeric_limits<double>::quiet_NaN() : run.trial.value, diverged,
         LabelsAt(input, grid.tuned_axes, row.candidates[run.candidate])});
    if (!diverged) values.push_back(run.trial.value);
  }
  result.n = runs.size();
  result.diverged = runs.size() - values.size();
  result.own = Summarize(values);
  if (values.empty() && result.diverged > 0) {
    result.own.mean = NoNumber(Undefined::kAllDiverged);
    result.own.interval = NoInterval(Undefined::kAllDiverged);
  }
  result.mean = result.own.mean;
  result.interval = result.own.interval;
  result.difference = NoPairs(Undefined::kNoBaseline);
  result.p_holm = NoNumber(Undefined::kNoBaseline);
  result.chosen = ChoicesOf(input, grid, row, runs);
  result.parameters = ParametersOf(runs);
  result.device_seconds = MeanOfRecorded(runs, &Cell::device_seconds);
  result.tokens_per_second = MeanOfRecorded(runs, &Cell::tokens_per_second);
  CountCells(row, &result);
  return result;
}

void CompareRow(const std::vector<PickedRun>& runs, const std::vector<PickedRun>& baseline,
                Better better, size_t resamples, ComparisonRow* row) {
  std::vector<double> values, baseline_values;
  row->pairs = Pairs();
  auto other = baseline.begin();
  for (const PickedRun& run : runs) {
    while (other != baseline.end() && other->seed < run.seed) ++other;
    if (other == baseline.end()) break;
    if (other->seed != run.seed) continue;
    CountPair(run, *other, better, &row->pairs);
    if (Diverged(run) || Diverged(*other)) continue;
    values.push_back(run.trial.value);
    baseline_values.push_back(other->trial.value);
  }
  const bool all_diverged = values.empty() && row->pairs.all > 0;
  row->difference = all_diverged ? NoPairs(Undefined::kAllDiverged)
                                 : ComparePairs(values, baseline_values, resamples);
  if (values.empty()) return;  // mean and interval stay its own
  const Summary paired = Summarize(values);
  row->mean = paired.mean;
  row->interval = paired.interval;
}

std::vector<std::string> ScoredDifferently(const GridRow& row, const GridRow& baseline) {
  const std::map<std::string, std::string>* first = nullptr;
  std::set<std::string> paths;
  for (const GridRow* of : {&baseline, &row}) {
    for (const Cell* cell : of->cells) {
      if (cell == nullptr) continue;
      if (first == nullptr) first = &cell->scored;
      if (cell->scored == *first) continue;
      for (const auto* one : {first, &cell->scored}) {
        for (const auto& [path, value] : *one) {
          const auto own = cell->scored.find(path), other = first->find(path);
          const bool equal =
              own != cell->scored.end() && other != first->end() && own->second == other->second;
          if (!equal) paths.insert(path);
        }
      }
    }
  }
  return {paths.begin(), paths.end()};
}

std::vector<std::string> ChangedPaths(const GridRow& row, const GridRow& baseline) {
  // Specs of one combination differ between seeds in nothing but the seed: any cell speaks for it.
  const auto specs = [](const GridRow& grid_row) {
    std::map<std::vector<size_t>, const Cell*> cells;
    for (size_t i = 0; i < grid_row.cells.size(); ++i) {
      if (grid_row.cells[i] == nullptr) continue;
      cells.emplace(grid_row.candidates[i / grid_row.seeds.size()], grid_row.cells[i]);
    }
    return cells;
  };
  const auto own = specs(row), others = specs(baseline);
  std::vector<std::string> paths;
  for (const auto& [candidate, cell] : own) {
    const auto other = others.find(candidate);
    if (other == others.end()) continue;
    std::map<std::string, std::optional<std::string>> differing(cell->changed.begin(),
                                                                cell->changed.end());
    for (const auto& [path, value] : other->second->changed) {
      const auto [found, added] = differing.emplace(path, value);
      if (!added && found->second == value) differing.erase(found);
    }
    for (const auto& [path, value] : differing) paths.push_back(path);
    break;
  }
  return paths;
}

}  // namespace ablate::report
