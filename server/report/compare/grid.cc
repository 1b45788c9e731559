#include "server/report/compare/grid.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace ablate::report {
namespace {

using LabelIndices = std::vector<size_t>;

std::optional<size_t> IndexOf(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

absl::Status NotOneOf(absl::string_view field, const std::string& value,
                      const std::vector<std::string>& allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": '", value, "' is unknown; expected ",
      allowed.empty() ? "none" : absl::StrCat("one of ", absl::StrJoin(allowed, ", "))));
}

absl::Status CheckNames(absl::string_view field, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat(field, ": the name is empty"));
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": '", name, "' is repeated; expected distinct names"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAxis(const Axis& axis) {
  const std::string field = absl::StrCat("axes.", axis.name);
  if (axis.labels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".labels: 0 labels; expected at least 1"));
  }
  RETURN_IF_ERROR(CheckNames(absl::StrCat(field, ".labels"), axis.labels));
  if (!axis.values.empty() && axis.values.size() != axis.labels.size()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ".values: ", axis.values.size(),
                                                   " values; expected none, or ",
                                                   axis.labels.size(), ", one per label"));
  }
  for (const double value : axis.values) {
    if (std::isfinite(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".values: ", value, "; expected finite numbers"));
  }
  if (axis.base.has_value() && !IndexOf(axis.labels, *axis.base).has_value()) {
    return NotOneOf(absl::StrCat(field, ".base"), *axis.base, axis.labels);
  }
  return absl::OkStatus();
}

// Splits the axes into compared and tuned ones.
absl::Status ArrangeAxes(const ComparisonInput& input, CellGrid* grid) {
  std::vector<std::string> names;
  for (const Axis& axis : input.axes) names.push_back(axis.name);
  RETURN_IF_ERROR(CheckNames("axes", names));
  if (!input.by.empty() && !IndexOf(names, input.by).has_value()) {
    return NotOneOf("by", input.by, names);
  }
  std::vector<std::string> compared;
  for (size_t i = 0; i < input.axes.size(); ++i) {
    const Axis& axis = input.axes[i];
    RETURN_IF_ERROR(CheckAxis(axis));
    const bool tuned = axis.tuned && axis.name != input.by;
    (tuned ? grid->tuned_axes : grid->row_axes).push_back(i);
    if (!tuned) compared.push_back(axis.name);
  }
  for (const auto& [name, label] : input.baseline) {
    if (!IndexOf(compared, name).has_value()) return NotOneOf("baseline", name, compared);
    const Axis& axis = input.axes[*IndexOf(names, name)];
    if (!IndexOf(axis.labels, label).has_value()) {
      return NotOneOf(absl::StrCat("baseline.", name), label, axis.labels);
    }
  }
  return absl::OkStatus();
}

using LabelIndex = std::vector<std::map<std::string, size_t>>;  // one per axis

absl::StatusOr<LabelIndices> LabelsOf(const Cell& cell, const ComparisonInput& input,
                                      const LabelIndex& index) {
  if (cell.labels.size() != input.axes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("cells.labels: ", cell.labels.size(),
                                                   " labels; expected ", input.axes.size(),
                                                   ", one per axis"));
  }
  LabelIndices labels;
  for (size_t i = 0; i < input.axes.size(); ++i) {
    const auto found = index[i].find(cell.labels[i]);
    if (found == index[i].end()) {
      return NotOneOf(absl::StrCat("cells.labels.", input.axes[i].name), cell.labels[i],
                      input.axes[i].labels);
    }
    labels.push_back(found->second);
  }
  return labels;
}

LabelIndices Part(const LabelIndices& labels, const std::vector<size_t>& axes) {
  LabelIndices part;
  for (const size_t axis : axes) part.push_back(labels[axis]);
  return part;
}

using RowCells = std::map<std::pair<LabelIndices, uint32_t>, const Cell*>;  // by candidate and seed

GridRow ArrangeRow(const LabelIndices& labels, const RowCells& cells) {
  GridRow row;
  row.labels = labels;
  std::set<LabelIndices> candidates;
  std::set<uint32_t> seeds;
  for (const auto& [place, cell] : cells) {
    candidates.insert(place.first);
    seeds.insert(place.second);
  }
  row.candidates.assign(candidates.begin(), candidates.end());
  row.seeds.assign(seeds.begin(), seeds.end());
  for (const LabelIndices& candidate : row.candidates) {
    for (const uint32_t seed : row.seeds) {
      const auto found = cells.find({candidate, seed});
      row.cells.push_back(found == cells.end() ? nullptr : found->second);
    }
  }
  return row;
}

// Returns true if cells that differ only in their setting of `axis`, and their seed, have different
// evaluation data.
bool ChangesScoring(const ComparisonInput& input, size_t axis) {
  std::map<std::vector<std::string>, const Cell*> first;
  for (const Cell& cell : input.cells) {
    std::vector<std::string> others = cell.labels;
    others[axis].clear();
    const auto [known, added] = first.emplace(std::move(others), &cell);
    if (!added && known->second->scored != cell.scored) return true;
  }
  return false;
}

// Returns the row axes to compare within, except those that the input asks to compare along.
std::vector<size_t> FindWithinAxes(const ComparisonInput& input, const CellGrid& grid) {
  std::vector<size_t> within;
  bool others = false;
  for (const size_t axis : grid.row_axes) {
    const std::string& name = input.axes[axis].name;
    if (!input.by.empty()) {
      if (name != input.by && ChangesScoring(input, axis)) within.push_back(axis);
      others = others || name == input.by;
    } else if (input.baseline.count(name) == 0 && ChangesScoring(input, axis)) {
      within.push_back(axis);
    } else {
      others = others || input.axes[axis].labels.size() > 1;
    }
  }
  return others ? within : std::vector<size_t>();
}

// Returns the labels of the baseline of the row with `labels`.
LabelIndices BaselineLabels(const ComparisonInput& input, const CellGrid& grid,
                            LabelIndices labels) {
  for (size_t i = 0; i < grid.row_axes.size(); ++i) {
    const Axis& axis = input.axes[grid.row_axes[i]];
    if (!input.by.empty() && axis.name != input.by) continue;
    const auto& within = grid.within_axes;
    if (std::find(within.begin(), within.end(), grid.row_axes[i]) != within.end()) continue;
    const auto named = input.baseline.find(axis.name);
    labels[i] = named == input.baseline.end() ? 0 : *IndexOf(axis.labels, named->second);
  }
  return labels;
}

// Returns INVALID_ARGUMENT if the cells can't be compared by sequence.
absl::Status CheckSequences(const ComparisonInput& input, const CellGrid& grid) {
  if (!grid.tuned_axes.empty() || input.scale != Scale::kDifference) {
    return absl::InvalidArgumentError(
        "unit: sequences; expected seeds if an axis is tuned or ratios are compared");
  }
  for (const GridRow& row : grid.rows) {
    if (row.cells.size() == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("unit: sequences with ", row.cells.size(),
                                                   " cells of a setting; expected one cell"));
  }
  std::map<std::string, size_t> counts;  // by what was read
  for (const Cell& cell : input.cells) {
    const std::vector<double>& values = cell.by_sequence;
    if (TrialOf(&cell).state != Trial::State::kConverged) continue;
    const bool finite = std::all_of(values.begin(), values.end(),
                                    [](double value) { return std::isfinite(value); });
    const size_t count = counts.emplace(cell.sequences, values.size()).first->second;
    const size_t weights = cell.sequence_weights.size();
    const bool whole = values.size() == count && (weights == 0 || weights == count);
    if (finite && count >= 2 && whole) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "cells.by_sequence: ", values.size(), finite ? "" : " not finite",
        " values; expected finite numbers, at least two, and as many as in other cells"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CellGrid> ArrangeCells(const ComparisonInput& input) {
  CellGrid grid;
  RETURN_IF_ERROR(ArrangeAxes(input, &grid));
  LabelIndex index(input.axes.size());
  for (size_t i = 0; i < input.axes.size(); ++i) {
    for (size_t label = 0; label < input.axes[i].labels.size(); ++label) {
      index[i][input.axes[i].labels[label]] = label;
    }
  }
  std::map<LabelIndices, RowCells> rows;
  for (const Cell& cell : input.cells) {
    ASSIGN_OR_RETURN(const LabelIndices labels, LabelsOf(cell, input, index));
    const LabelIndices candidate = Part(labels, grid.tuned_axes);
    RowCells& row = rows[Part(labels, grid.row_axes)];
    if (!row.emplace(std::make_pair(candidate, cell.seed), &cell).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cells: ", absl::StrJoin(cell.labels, "/"), " with seed ", cell.seed,
                       " is repeated; expected one cell per combination and seed"));
    }
  }
  grid.within_axes = FindWithinAxes(input, grid);
  std::map<LabelIndices, size_t> positions;
  for (const auto& [labels, cells] : rows) {
    positions[labels] = grid.rows.size();
    grid.rows.push_back(ArrangeRow(labels, cells));
  }
  for (GridRow& row : grid.rows) {
    const auto found = positions.find(BaselineLabels(input, grid, row.labels));
    if (found != positions.end()) row.baseline = found->second;
  }
  if (input.unit != Unit::kSeed) {
    if (absl::Status status = CheckSequences(input, grid); !status.ok()) return status;
  }
  return grid;
}

namespace {

Trial TrialBy(const Cell* cell, std::optional<double> Cell::*value) {
  if (cell == nullptr) return {};
  const bool done = cell->outcome == RunOutcome::kDone && (cell->*value).has_value();
  if (done && std::isfinite(*(cell->*value))) return {Trial::State::kConverged, *(cell->*value)};
  if (done || cell->outcome == RunOutcome::kDiverged) return {Trial::State::kDiverged, 0};
  return {};
}

}  // namespace

Trial TrialOf(const Cell* cell) { return TrialBy(cell, &Cell::value); }

Trial ChoiceOf(const Cell* cell) { return TrialBy(cell, &Cell::choice); }

bool IsNotPositive(const Cell& cell) {
  const Trial trial = TrialOf(&cell);
  return trial.state == Trial::State::kConverged && !(trial.value > 0);
}

bool HasNotPositive(const ComparisonInput& input) {
  return std::any_of(input.cells.begin(), input.cells.end(), IsNotPositive);
}

TunedPair PairTrials(const ComparisonInput& input, Scale scale, const GridRow& row,
                     const GridRow& baseline) {
  std::map<std::vector<size_t>, size_t> candidates;  // their indexes, in the grid's order
  std::map<uint32_t, size_t> seeds;
  for (const GridRow* of : {&row, &baseline}) {
    for (const auto& candidate : of->candidates) candidates.emplace(candidate, 0);
    for (const uint32_t seed : of->seeds) seeds.emplace(seed, 0);
  }
  const auto number = [](auto* places) {
    size_t next = 0;
    for (auto& [key, place] : *places) place = next++;
  };
  number(&candidates);
  number(&seeds);
  const auto trials = [&](const GridRow& of, Trial (*trial)(const Cell*)) {
    std::vector<Trial> all(candidates.size() * seeds.size());
    for (size_t i = 0; i < of.cells.size(); ++i) {
      const size_t candidate = candidates[of.candidates[i / of.seeds.size()]];
      all[candidate * seeds.size() + seeds[of.seeds[i % of.seeds.size()]]] = trial(of.cells[i]);
    }
    return all;
  };
  TunedPair pair{candidates.size(), seeds.size(), trials(row, TrialOf), trials(baseline, TrialOf)};
  const bool by_other = !input.choice_key.empty();
  pair.choice_better = by_other ? input.choice_better : input.better;
  if (by_other || scale == Scale::kRatio) {
    pair.setting_choices = trials(row, by_other ? ChoiceOf : TrialOf);
    pair.baseline_choices = trials(baseline, by_other ? ChoiceOf : TrialOf);
  }
  for (std::vector<Trial>* values : {&pair.setting, &pair.baseline}) {
    for (Trial& trial : *values) {
      if (trial.state == Trial::State::kConverged) trial.value = OnScale(scale, trial.value);
    }
  }
  return pair;
}

bool NeedsValue(const ComparisonInput& input, const GridRow& row, size_t index,
                const std::vector<std::optional<size_t>>& picks) {
  if (input.choice_key.empty() || !row.cells[index]->choice.has_value()) return true;
  return picks[index % row.seeds.size()] == index / row.seeds.size();
}

std::vector<std::string> LabelsAt(const ComparisonInput& input, const std::vector<size_t>& axes,
                                  const std::vector<size_t>& indices) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < axes.size(); ++i) labels.push_back(input.axes[axes[i]].labels[indices[i]]);
  return labels;
}

}  // namespace ablate::report
