#include "server/report/compare/comparison.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/report/compare/grid.h"
#include "server/report/compare/judging.h"
#include "server/report/compare/warnings.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

// A run that represents its row on one seed. It has a result.
struct PickedRun {
  uint32_t seed = 0;
  const Cell* cell = nullptr;
  size_t candidate = 0;  // index in the grid row
  Trial trial;
};

bool Diverged(const PickedRun& run) { return run.trial.state == Trial::State::kDiverged; }

// Returns the mean of a cost over the runs that recorded it.
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

// Sets counts and costs over all cells of the row, selected or not. `picks` are its candidates by
// seed.
void CountCells(const ComparisonInput& input, const GridRow& row,
                const std::vector<std::optional<size_t>>& picks, ComparisonRow* result) {
  CompensatedSum device_seconds;
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const Cell* cell = row.cells[i];
    if (cell == nullptr) continue;
    ++result->cells;
    result->unfinished += cell->outcome == RunOutcome::kUnfinished;
    device_seconds.Add(cell->device_seconds.value_or(0));
    if (cell->outcome == RunOutcome::kFailed) {
      ++result->failed;
    } else if (NeedsValue(input, row, i, picks) && TrialOf(cell).state == Trial::State::kNone) {
      ++result->missing;
    }
  }
  result->device_seconds_all = device_seconds.Total();
}

std::vector<Choice> ChoicesOf(const ComparisonInput& input, const CellGrid& grid,
                              const GridRow& row, const std::vector<PickedRun>& runs) {
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

// Counts who won the seed, and whether both can be subtracted.
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
  const double difference = DifferenceOf(run.trial.value, baseline.trial.value);
  const double gain = better == Better::kHigher ? difference : -difference;
  ++(gain > 0 ? pairs->wins : gain < 0 ? pairs->losses : pairs->ties);
}

// Returns the picked runs in order of seed; seeds whose pick has no result are left out.
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

// Returns the selected runs that are done and have no value.
std::vector<SeedRun> WithoutValue(const ComparisonInput& input, const CellGrid& grid,
                                  const GridRow& row,
                                  const std::vector<std::optional<size_t>>& picks) {
  std::vector<SeedRun> runs;
  for (size_t i = 0; i < row.seeds.size(); ++i) {
    if (!picks[i].has_value()) continue;
    const Cell* cell = row.cells[*picks[i] * row.seeds.size() + i];
    if (cell == nullptr || cell->outcome != RunOutcome::kDone || cell->value.has_value()) continue;
    runs.push_back({row.seeds[i],
                    std::numeric_limits<double>::quiet_NaN(),
                    false,
                    LabelsAt(input, grid.tuned_axes, row.candidates[*picks[i]]),
                    {}});
  }
  return runs;
}

// Returns for each converged run one trial per sequence, whose index counts as its seed.
std::vector<PickedRun> SequencesOf(const std::vector<PickedRun>& runs) {
  std::vector<PickedRun> sequences;
  for (const PickedRun& run : runs) {
    if (Diverged(run)) continue;
    for (const double value : run.cell->by_sequence) {
      const auto index = static_cast<uint32_t>(sequences.size());
      sequences.push_back({index, run.cell, run.candidate, {Trial::State::kConverged, value}});
    }
  }
  return sequences;
}

// Returns the parts of a cell's sequences as values whose spread is that of the number. The number
// is a ratio of sums of values and of targets, so that a sequence's length isn't spread of it:
// m + (v − m·w) of part v, weight w and number m. Their mean is m.
std::vector<double> LinearParts(const Cell& cell) {
  std::vector<double> parts = cell.by_sequence;
  for (size_t i = 0; i < cell.sequence_weights.size(); ++i) {
    parts[i] += *cell.value * (1 - cell.sequence_weights[i]);
  }
  return parts;
}

// Sets the fields about the row alone: those up to `own`, `mean` and `interval` equal to it, and
// costs. Fills `labels` of the candidates' tuned axes into runs and `chosen`.
ComparisonRow DescribeRow(const ComparisonInput& input, Scale scale, const CellGrid& grid,
                          const GridRow& row, const std::vector<std::optional<size_t>>& picks,
                          const std::vector<PickedRun>& runs) {
  ComparisonRow result;
  result.labels = LabelsAt(input, grid.row_axes, row.labels);
  std::vector<std::string> axes;
  for (size_t i = 0; i < grid.row_axes.size(); ++i) {
    const Axis& axis = input.axes[grid.row_axes[i]];
    axes.push_back(axis.name);
    result.numbers.push_back(axis.values.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                 : axis.values[row.labels[i]]);
  }
  result.label = SettingName(axes, result.labels);
  std::vector<double> values;
  for (const PickedRun& run : runs) {
    const bool diverged = Diverged(run);
    SeedRun& added = result.runs.emplace_back(
        SeedRun{run.seed,
                diverged ? std::numeric_limits<double>::quiet_NaN() : run.trial.value,
                diverged,
                LabelsAt(input, grid.tuned_axes, row.candidates[run.candidate]),
                {}});
    result.diverged += diverged;
    if (diverged) continue;
    if (input.unit != Unit::kSeed) {
      added.by_sequence = LinearParts(*run.cell);
      values.insert(values.end(), added.by_sequence.begin(), added.by_sequence.end());
    } else {
      values.push_back(OnScale(scale, run.trial.value));
    }
  }
  result.without_value = WithoutValue(input, grid, row, picks);
  result.n = runs.size();
  result.own = OffScale(scale, Summarize(values));
  if (values.empty() && result.diverged > 0) {
    result.own.mean = NoNumber(Undefined::kAllDiverged);
    result.own.interval = NoInterval(Undefined::kAllDiverged);
  }
  result.mean = result.own.mean;
  result.interval = result.own.interval;
  result.difference = NoPairs(Undefined::kNoBaseline);
  result.noise_ratio = NoNumber(Undefined::kNoBaseline);
  result.p = NoNumber(Undefined::kNoBaseline);
  result.p_holm = NoNumber(Undefined::kNoBaseline);
  result.chosen = ChoicesOf(input, grid, row, runs);
  result.parameters = ParametersOf(runs);
  result.device_seconds = MeanOfRecorded(runs, &Cell::device_seconds);
  result.tokens_per_second = MeanOfRecorded(runs, &Cell::tokens_per_second);
  CountCells(input, row, picks, &result);
  return result;
}

Number NoiseRatio(const std::vector<double>& values, const std::vector<double>& baseline) {
  const Number own = StandardDeviation(values), other = StandardDeviation(baseline);
  if (own.undefined == Undefined::kZeroVariance && other.defined()) return Defined(0);
  return Quotient(own, other);
}

// Adds the comparison with the baseline's runs to `row`: pairs, difference, and the mean and
// interval over the pairs in which both converged, if there are any.
void CompareRow(const std::vector<PickedRun>& runs, const std::vector<PickedRun>& baseline,
                const Measure& measure, const CompareOptions& options, ComparisonRow* row) {
  std::vector<double> values, baseline_values, differences;
  const double worst = measure.better == Better::kLower ? INFINITY : -INFINITY;
  row->pairs = Pairs();
  auto other = baseline.begin();
  for (const PickedRun& run : runs) {
    while (other != baseline.end() && other->seed < run.seed) ++other;
    if (other == baseline.end()) break;
    if (other->seed != run.seed) continue;
    CountPair(run, *other, measure.better, &row->pairs);
    if (Diverged(run) || Diverged(*other)) {
      const bool both = Diverged(run) && Diverged(*other);
      differences.push_back(both ? 0 : Diverged(run) ? worst : -worst);
      continue;
    }
    values.push_back(OnScale(measure.scale, run.trial.value));
    baseline_values.push_back(OnScale(measure.scale, other->trial.value));
    differences.push_back(values.back() - baseline_values.back());
  }
  if (!differences.empty()) row->looks = LookAtEachPair(differences, measure.better);
  const bool all_diverged = values.empty() && row->pairs.all > 0;
  row->difference = all_diverged ? NoPairs(Undefined::kAllDiverged)
                                 : ComparePairs(values, baseline_values, options.resamples,
                                                options.tests ? Signs::kFlip : Signs::kLeaveOut);
  row->noise_ratio = NoiseRatio(values, baseline_values);
  if (values.empty()) return;  // mean and interval stay its own
  const Summary paired = OffScale(measure.scale, Summarize(values));
  row->mean = paired.mean;
  row->interval = paired.interval;
}

// Returns the paths at which evaluation data differs between any two cells of the row and its
// baseline, ascending.
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

// Returns true if neither cell has `path` from its settings.
bool Follows(const Cell& cell, const Cell& other, const std::string& path) {
  const auto written = [&path](const Cell& of) {
    return of.changed.count(path) > 0 && of.follows.count(path) == 0;
  };
  return !written(cell) && !written(other);
}

// Returns one cell for each combination of tuned values. Specs of one combination differ between
// seeds only in the seed: any cell represents it.
std::map<std::vector<size_t>, const Cell*> SpecsOf(const GridRow& row) {
  std::map<std::vector<size_t>, const Cell*> cells;
  for (size_t i = 0; i < row.cells.size(); ++i) {
    if (row.cells[i] == nullptr) continue;
    cells.emplace(row.candidates[i / row.seeds.size()], row.cells[i]);
  }
  return cells;
}

// Returns the paths whose values differ between two cells, ascending.
std::set<std::string> DifferingPaths(const Cell& cell, const Cell& other) {
  std::set<std::string> paths;
  for (const auto& [of, against] : {std::pair(&cell, &other), std::pair(&other, &cell)}) {
    for (const auto& [path, value] : of->changed) {
      const auto found = against->changed.find(path);
      if (found == against->changed.end() || found->second != value) paths.insert(path);
    }
  }
  return paths;
}

// Sets the paths whose values differ between the two rows at a combination of tuned values that
// both have, ascending. Without one, those of any two combinations, except paths that the tuned
// values change within a row.
void FindChanges(const GridRow& row, const GridRow& baseline, ComparisonRow* to) {
  const auto own = SpecsOf(row), others = SpecsOf(baseline);
  if (own.empty() || others.empty()) return;
  const auto shared = std::find_if(
      own.begin(), own.end(), [&others](const auto& spec) { return others.count(spec.first) > 0; });
  const bool any = shared == own.end();
  const Cell& cell = any ? *own.begin()->second : *shared->second;
  const Cell& other = any ? *others.begin()->second : *others.at(shared->first);
  std::set<std::string> changed = DifferingPaths(cell, other);
  for (const auto* specs : {&own, &others}) {
    for (const auto& [candidate, spec] : *specs) {
      if (!any) continue;
      for (const std::string& path : DifferingPaths(*specs->begin()->second, *spec)) {
        changed.erase(path);
      }
    }
  }
  to->changed.assign(changed.begin(), changed.end());
  for (const std::string& path : changed) {
    if (Follows(cell, other, path)) to->follows.insert(path);
  }
}

Selection SelectRow(const ComparisonInput& input, const GridRow& row) {
  const bool by_other = !input.choice_key.empty();
  std::vector<Trial> trials;
  for (const Cell* cell : row.cells) trials.push_back(by_other ? ChoiceOf(cell) : TrialOf(cell));
  return LeaveOneSeedOut(trials, row.candidates.size(), row.seeds.size(),
                         by_other ? input.choice_better : input.better);
}

bool Stops(const CompareOptions& options) { return options.cancelled && options.cancelled(); }

// Marks rows that get no verdict; `grid_rows` are by row.
void Withhold(const std::vector<GridRow>& grid_rows, bool exploratory,
              std::vector<ComparisonRow>* rows) {
  for (size_t i = 0; i < rows->size(); ++i) {
    ComparisonRow& row = (*rows)[i];
    if (!row.baseline.has_value() || *row.baseline == i) continue;
    const ComparisonRow& baseline = (*rows)[*row.baseline];
    row.scored_differently = ScoredDifferently(grid_rows[i], grid_rows[*row.baseline]);
    if (!row.scored_differently.empty()) {
      row.withheld = Withheld::kScoredDifferently;
    } else if (row.unfinished + baseline.unfinished > 0) {
      row.withheld = Withheld::kUnfinished;
    } else if (exploratory) {
      row.withheld = Withheld::kExploratory;
    } else if (row.pairs.all < kLeastPairs) {
      row.withheld = Withheld::kTooFewPairs;
    }
  }
}

// Compares two rows of one run each over the sequences that both read; by no pair if they read
// others. Wins and the sign-flip test are of the sequences' parts, the rest is of LinearParts.
void CompareSequences(const std::vector<PickedRun>& run, const std::vector<PickedRun>& baseline,
                      const Measure& measure, const CompareOptions& options, ComparisonRow* row) {
  const bool paired =
      !run.empty() && !baseline.empty() && run[0].cell->sequences == baseline[0].cell->sequences;
  std::vector<PickedRun> own, other;
  if (paired) own = SequencesOf(run), other = SequencesOf(baseline);
  CompareRow(own, other, measure, {{}, /*resamples=*/0, options.tests}, row);
  row->looks.reset();
  if (row->pairs.converged == 0) return;
  const PairedStatistics parts = row->difference;
  row->difference = ComparePairs(LinearParts(*run[0].cell), LinearParts(*baseline[0].cell),
                                 options.resamples, Signs::kLeaveOut);
  row->difference.p_sign_flip = parts.p_sign_flip;
  row->difference.exact = parts.exact;
  row->mean = row->own.mean;
  row->interval = row->own.interval;
}

// Compares each row with its baseline; `runs` are by row. Stops early if cancelled.
void CompareRows(const Measure& measure, const std::vector<std::vector<PickedRun>>& runs,
                 const CompareOptions& options, std::vector<ComparisonRow>* rows) {
  for (size_t i = 0; i < rows->size() && !Stops(options); ++i) {
    ComparisonRow& row = (*rows)[i];
    row.is_baseline = row.baseline == i;
    if (row.is_baseline) {
      row.difference = NoPairs(Undefined::kIsBaseline);
      row.noise_ratio = NoNumber(Undefined::kIsBaseline);
      row.p = NoNumber(Undefined::kIsBaseline);
      row.p_holm = NoNumber(Undefined::kIsBaseline);
    } else if (row.baseline.has_value()) {
      const auto compare = measure.unit != Unit::kSeed ? CompareSequences : CompareRow;
      compare(runs[i], runs[*row.baseline], measure, options, &row);
      if (options.tests) Judge(measure, &row);
    }
  }
}

// Returns true if all DONE runs have a value, in case another metric is used for selection.
bool HaveValues(const ComparisonInput& input) {
  return input.choice_key.empty() ||
         std::all_of(input.cells.begin(), input.cells.end(), [](const Cell& cell) {
           return cell.outcome != RunOutcome::kDone || cell.value.has_value();
         });
}

void JudgeTunedRows(const ComparisonInput& input, const Measure& measure, const CellGrid& grid,
                    const CompareOptions& options, std::vector<ComparisonRow>* rows) {
  for (size_t i = 0; i < rows->size() && !Stops(options); ++i) {
    ComparisonRow& row = (*rows)[i];
    if (row.compared()) JudgeTuned(input, measure, grid.rows[i], grid.rows[*row.baseline], &row);
  }
}

// Returns the cells of one candidate of a row, as a row of its own.
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

MatchedBlock MatchAt(const ComparisonInput& input, const Measure& measure, const CellGrid& grid,
                     const std::vector<size_t>& candidate, const CompareOptions& options) {
  MatchedBlock block;
  block.labels = LabelsAt(input, grid.tuned_axes, candidate);
  std::map<size_t, size_t> position;  // grid row → index in the block
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
    const std::vector<std::optional<size_t>> picks(rows[i].seeds.size(), 0);
    runs.push_back(RunsOf(rows[i], picks));
    block.rows.push_back(DescribeRow(input, measure.scale, grid, rows[i], picks, runs[i]));
    if (!baselines[i].has_value() || position.count(*baselines[i]) == 0) continue;
    block.rows[i].baseline = position[*baselines[i]];
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<size_t> baseline = block.rows[i].baseline;
    if (baseline.has_value()) FindChanges(rows[i], rows[*baseline], &block.rows[i]);
  }
  CompareRows(measure, runs, {options.cancelled, /*resamples=*/0}, &block.rows);
  Withhold(rows, !input.exploratory.empty(), &block.rows);
  return block;
}

std::vector<MatchedBlock> MatchAll(const ComparisonInput& input, const Measure& measure,
                                   const CellGrid& grid, const CompareOptions& options) {
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
    blocks.push_back(MatchAt(input, measure, grid, candidate, options));
  }
  std::vector<ComparisonRow*> rows;
  for (MatchedBlock& block : blocks) {
    for (ComparisonRow& row : block.rows) rows.push_back(&row);
  }
  AdjustFamily(rows);
  return blocks;
}

// Returns true if the block compares rows, or if it is only that nothing is compared at all.
bool Compares(const Comparison& comparison, const MatchedBlock& block) {
  return block.rows.size() == comparison.rows.size() ||
         std::any_of(block.rows.begin(), block.rows.end(),
                     [](const ComparisonRow& row) { return row.compared(); });
}

// Returns the block at the base spec's own tuned values; otherwise at the first baseline's most
// frequent selection. None if no other row was tried there.
std::optional<size_t> ReferenceBlock(const ComparisonInput& input, const CellGrid& grid,
                                     const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const size_t axis : grid.tuned_axes) labels.push_back(input.axes[axis].base.value_or(""));
  const auto at = [&](const std::vector<std::string>& wanted) -> std::optional<size_t> {
    for (size_t i = 0; i < comparison.matched.size(); ++i) {
      const MatchedBlock& block = comparison.matched[i];
      if (block.labels == wanted && Compares(comparison, block)) return i;
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

// Returns true if each row tried three different numbers of each tuned axis or more.
bool KnowsEdges(const ComparisonInput& input, const CellGrid& grid) {
  for (size_t tuned = 0; tuned < grid.tuned_axes.size(); ++tuned) {
    const std::vector<double>& numbers = input.axes[grid.tuned_axes[tuned]].values;
    if (numbers.empty()) return false;
    for (const GridRow& row : grid.rows) {
      std::set<double> tried;
      for (const auto& candidate : row.candidates) tried.insert(numbers[candidate[tuned]]);
      if (tried.size() < 3) return false;
    }
  }
  return !grid.tuned_axes.empty();
}

}  // namespace

std::optional<size_t> SharedBaseline(const Comparison& comparison) {
  std::optional<size_t> shared;
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.compared()) continue;
    if (shared.has_value() && shared != row.baseline) return std::nullopt;
    shared = row.baseline;
  }
  return shared;
}

bool IsReselected(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const ComparisonRow& row) {
    return row.compared() && row.difference.by_reselection;
  });
}

absl::StatusOr<Comparison> Compare(const ComparisonInput& input, const CompareOptions& options) {
  ASSIGN_OR_RETURN(const CellGrid grid, ArrangeCells(input));
  Comparison comparison;
  comparison.key = input.key;
  comparison.source = input.source;
  comparison.at = input.at;
  const Measure measure = MeasureOf(input);
  comparison.unit = measure.unit;
  comparison.better = measure.better;
  comparison.scale = measure.scale;
  comparison.choice_key = input.choice_key;
  comparison.exploratory = input.exploratory;
  if (measure.margin.has_value()) comparison.margin = input.margin;
  for (const size_t axis : grid.row_axes) comparison.row_axes.push_back(input.axes[axis].name);
  for (const size_t axis : grid.tuned_axes) {
    comparison.tuned_axes.push_back(input.axes[axis].name);
    comparison.tuned_labels.push_back(input.axes[axis].labels);
  }
  comparison.edges_known = KnowsEdges(input, grid);
  for (const size_t axis : grid.within_axes) {
    comparison.within_axes.push_back(input.axes[axis].name);
  }
  comparison.planned = input.cells.size();

  std::vector<Selection> selections;
  std::vector<std::vector<PickedRun>> runs;
  for (const GridRow& row : grid.rows) {
    selections.push_back(SelectRow(input, row));
    runs.push_back(RunsOf(row, selections.back().picks));
    comparison.rows.push_back(
        DescribeRow(input, measure.scale, grid, row, selections.back().picks, runs.back()));
    comparison.rows.back().baseline = row.baseline;
    if (row.baseline.has_value()) {
      FindChanges(row, grid.rows[*row.baseline], &comparison.rows.back());
    }
  }
  CompareRows(measure, runs, options, &comparison.rows);
  // If another metric is used for selection, values that only selected runs have can't be compared.
  const bool whole = HaveValues(input);
  if (!grid.tuned_axes.empty() && whole && options.tests) {
    JudgeTunedRows(input, measure, grid, options, &comparison.rows);
  }
  Withhold(grid.rows, !input.exploratory.empty(), &comparison.rows);
  if (Stops(options)) return absl::CancelledError("the call was cancelled");
  if (!options.tests) return comparison;
  std::vector<ComparisonRow*> rows;
  comparison.ended = comparison.planned;
  for (ComparisonRow& row : comparison.rows) {
    rows.push_back(&row);
    comparison.ended -= row.unfinished;
  }
  comparison.family = AdjustFamily(rows);
  FindPower(comparison.family, &comparison.rows);
  if (!grid.tuned_axes.empty() && whole) {
    comparison.matched = MatchAll(input, measure, grid, options);
    comparison.reference = ReferenceBlock(input, grid, comparison);
  }
  if (Stops(options)) return absl::CancelledError("the call was cancelled");
  comparison.factorial = FindFactorial(comparison);
  comparison.warnings = FindWarnings(input, grid, selections, comparison);
  return comparison;
}

}  // namespace ablate::report
