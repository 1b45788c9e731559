#include "server/results/merged_grid.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/report/compare/wording.h"

namespace ablate::results {
namespace {

// A tuned axis of any of the experiments.
struct TunedAxis {
  std::string path;  // the field that it varies; "" if its settings write several
  report::Axis axis;
};

// The cells of one setting of one experiment.
struct Setting {
  std::string label;
  const TrainedGrid* grid = nullptr;
  std::vector<size_t> cells;  // indexes in the grid
};

// Returns the specs of a setting's cells, tuned values included; settings with equal sets are the
// same.
std::set<std::string> SpecsOf(const Setting& setting) {
  std::set<std::string> specs;
  for (const size_t cell : setting.cells) specs.insert(setting.grid->spec_hashes[cell]);
  return specs;
}

std::string LabelAt(const storage::CellRecord& cell, const std::string& axis) {
  for (const auto& [name, label] : cell.labels) {
    if (name == axis) return label;
  }
  return "";
}

class Merger {
 public:
  Merger(storage::Store* store, const GridQuery& query,
         const std::map<std::string, Operand>& baseline, const lookup::Cancelled& cancelled)
      : store_(store), query_(query), baseline_(baseline), cancelled_(cancelled) {}

  absl::StatusOr<TrainedGrid> Run(const std::vector<Operand>& operands) {
    if (!query_.by.empty()) {
      return lookup::InvalidField("by",
                                  absl::StrCat(reflect::Quoted(query_.by), " isn't an axis here"),
                                  "none: settings named one by one have one baseline");
    }
    RETURN_IF_ERROR(LoadAll(operands));
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::string field = i == 0 ? "experiment" : absl::StrCat("others[", i - 1, "]");
      if (absl::Status added = AddSettings(operands[i], field); !added.ok()) return added;
    }
    FindTunedAxes();
    PutInput();
    for (const auto& [label, settings] : settings_) PutCells(label, settings);
    RETURN_IF_ERROR(CheckBaseline());
    return std::move(merged_);
  }

 private:
  // Loads each experiment once, the first one first.
  absl::Status LoadAll(const std::vector<Operand>& operands) {
    std::vector<StoredExperiment> experiments;
    bool tuned = false;
    for (const Operand& operand : operands) {
      if (!ids_.insert(operand.experiment).second) continue;
      ASSIGN_OR_RETURN(auto experiment, LoadExperiment(store_, operand.experiment));
      for (const v1::Axis& axis : experiment.spec.axes()) tuned = tuned || axis.tune();
      experiments.push_back(std::move(experiment));
    }
    GridQuery query = query_;
    query.analyses = AnalysisNumbers::kAll;
    if (query.key.empty()) query.key = PrimaryMetric(experiments[0].spec);
    if (tuned) query.choice_key = ChoiceMetric(experiments[0].spec);
    for (StoredExperiment& experiment : experiments) {
      const std::string id = experiment.record.id;
      ASSIGN_OR_RETURN(auto grid, LoadGrid(store_, std::move(experiment), query, cancelled_));
      const TrainedGrid& added = grids_.emplace(id, std::move(grid)).first->second;
      if (query.reference == nullptr) query.reference = first_ = &added;
      merged_.metrics.Merge(added.metrics);
    }
    return absl::OkStatus();
  }

  // Returns the part with its experiment, or alone if there is only one experiment.
  std::string LabelOf(const std::string& experiment, const std::string& part) const {
    return ids_.size() == 1 && !part.empty() ? part : OperandName(experiment, part);
  }

  // Adds the settings that an operand names, in their order.
  absl::Status AddSettings(const Operand& operand, const std::string& field) {
    const TrainedGrid& grid = grids_.at(operand.experiment);
    const PartNames names(grid.spec);
    ASSIGN_OR_RETURN(const auto selected, names.Select(grid.cells, operand, field));
    std::vector<Setting> settings;
    std::map<std::string, size_t> places;
    for (const size_t cell : selected) {
      const std::string part =
          operand.part.empty() ? names.Setting(grid.cells[cell]) : operand.part;
      const auto [place, added] = places.emplace(part, settings.size());
      if (added) settings.push_back({LabelOf(operand.experiment, part), &grid, {}});
      settings[place->second].cells.push_back(cell);
    }
    for (Setting& setting : settings) AddSetting(std::move(setting));
    return absl::OkStatus();
  }

  // Adds a setting of its own, or adds it to the one with equal specs.
  void AddSetting(Setting setting) {
    const auto [place, added] = by_specs_.emplace(SpecsOf(setting), settings_.size());
    by_label_.emplace(setting.label, place->second);
    if (added) {
      settings_.push_back({setting.label, {}});
    } else if (absl::StartsWith(settings_[place->second].first, setting.label)) {
      // The operand is a cell of a setting that is named now, or that setting.
      settings_[place->second].first = setting.label;
    } else if (!absl::StartsWith(setting.label, settings_[place->second].first)) {
      same_.push_back(absl::StrCat(report::Quoted(setting.label), " is the same setting as ",
                                   report::Quoted(settings_[place->second].first)));
    }
    settings_[place->second].second.push_back(std::move(setting));
  }

  // Finds tuned axes of which some setting has several values; only those need a selection.
  void FindTunedAxes() {
    for (const auto& [label, settings] : settings_) {
      for (const Setting& setting : settings) {
        for (const report::Axis& axis : setting.grid->input.axes) {
          std::set<std::string> labels;
          for (const size_t cell : setting.cells) {
            labels.insert(LabelAt(setting.grid->cells[cell], axis.name));
          }
          if (axis.tuned && labels.size() > 1) AddTunedAxis(setting, axis);
        }
      }
    }
  }

  void AddTunedAxis(const Setting& setting, const report::Axis& axis) {
    for (const TunedAxis& known : tuned_) {
      if (known.axis.name == axis.name) return;
    }
    TunedAxis added;
    for (const v1::Axis& of_spec : setting.grid->spec.axes()) {
      if (of_spec.name() == axis.name) added.path = of_spec.field();
    }
    added.axis.name = axis.name;
    added.axis.tuned = true;
    added.axis.base = axis.base;
    tuned_.push_back(std::move(added));
  }

  // Returns a cell's label on a tuned axis; if its experiment lacks the axis, its value there.
  static std::string TunedLabel(const Setting& setting, size_t cell, const TunedAxis& tuned) {
    std::string label = LabelAt(setting.grid->cells[cell], tuned.axis.name);
    if (label.empty() && !tuned.path.empty()) label = FieldOf(*setting.grid, cell, tuned.path);
    return label.empty() ? "untuned" : label;
  }

  void PutInput() {
    TrainedGrid& grid = merged_;
    grid.record = first_->record;
    grid.spec = first_->spec;
    grid.base = first_->base;
    report::ComparisonInput& input = grid.input;
    const report::ComparisonInput& first = first_->input;
    input.key = first.key;
    input.source = first.source;
    input.at = first.at;
    input.better = first.better;
    input.scale = first.scale;
    input.choice_better = first.choice_better;
    input.margin = first.margin;
    for (const auto& [axis, operand] : baseline_) {
      // A setting that equals another takes the other's name.
      std::string label = LabelOf(operand.experiment, operand.part);
      const auto place = by_label_.find(label);
      input.baseline[axis] = place == by_label_.end() ? label : settings_[place->second].first;
    }
    input.exploratory = first.exploratory;
    for (const auto& [id, other] : grids_) {
      if (other.input.source == report::MetricSource::kProgram) input.source = other.input.source;
      if (other.input.margin != input.margin) margins_differ_ = true;
      if (!input.exploratory.empty() || other.input.exploratory.empty()) continue;
      input.exploratory = absl::StrCat(other.input.exploratory, " in ", id);
    }
    if (margins_differ_) input.margin.reset();
    if (!tuned_.empty()) input.choice_key = first.choice_key;
    PutAxes();
    PutOrigins();
  }

  void PutAxes() {
    std::vector<report::Axis>& axes = merged_.input.axes;
    axes.emplace_back().name = kSettingAxis;
    for (const auto& [label, settings] : settings_) axes[0].labels.push_back(label);
    for (TunedAxis& tuned : tuned_) {
      for (const auto& [label, settings] : settings_) {
        for (const Setting& setting : settings) {
          for (const size_t cell : setting.cells)
            AddLabel(TunedLabel(setting, cell, tuned), &tuned);
        }
      }
      for (const std::string& label : tuned.axis.labels) {
        double value = 0;
        if (absl::SimpleAtod(label, &value)) tuned.axis.values.push_back(value);
      }
      if (tuned.axis.values.size() != tuned.axis.labels.size()) tuned.axis.values.clear();
      axes.push_back(tuned.axis);
    }
  }

  static void AddLabel(std::string label, TunedAxis* tuned) {
    std::vector<std::string>& labels = tuned->axis.labels;
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
      labels.push_back(std::move(label));
    }
  }

  void PutOrigins() {
    std::vector<std::string> notes;
    if (ids_.size() > 1) {
      notes.push_back(absl::StrCat(
          "settings of ", ids_.size(),
          " experiments: p values hold only for comparisons planned before the results were seen"));
    }
    if (!same_.empty()) {
      notes.push_back(absl::StrCat(report::Enumerated(same_), ", so their seeds are pooled"));
    }
    if (margins_differ_) {
      notes.emplace_back("their report.margin differs, so nothing is called equivalent");
    }
    merged_.input.origins = absl::StrJoin(notes, "; ");
  }

  // Uses the first of two cells with the same spec and seed: they share a run, or one trained it
  // again.
  void PutCells(const std::string& label, const std::vector<Setting>& settings) {
    TrainedGrid& to = merged_;
    std::set<std::pair<std::string, uint32_t>> known;
    for (const Setting& setting : settings) {
      const TrainedGrid& from = *setting.grid;
      for (const size_t i : setting.cells) {
        if (!known.emplace(from.spec_hashes[i], from.cells[i].seed).second) continue;
        report::Cell cell = from.input.cells[i];
        storage::CellRecord record = from.cells[i];
        record.name = OperandName(from.record.id, record.name);
        record.labels = {{kSettingAxis, label}};
        for (const TunedAxis& tuned : tuned_) {
          record.labels.emplace_back(tuned.axis.name, TunedLabel(setting, i, tuned));
        }
        cell.labels.clear();
        for (const auto& [axis, value] : record.labels) cell.labels.push_back(value);
        to.input.cells.push_back(std::move(cell));
        to.cells.push_back(std::move(record));
        to.spec_hashes.push_back(from.spec_hashes[i]);
      }
    }
  }

  absl::Status CheckBaseline() const {
    const std::vector<std::string>& labels = merged_.input.axes[0].labels;
    for (const auto& [axis, label] : merged_.input.baseline) {
      if (axis != kSettingAxis) {
        return lookup::InvalidField("baseline",
                                    absl::StrCat(reflect::Quoted(axis), " isn't an axis here"),
                                    absl::StrCat(kSettingAxis, "=EXP/SETTING"));
      }
      if (std::find(labels.begin(), labels.end(), label) != labels.end()) continue;
      return lookup::InvalidField("baseline[setting]",
                                  absl::StrCat(reflect::Quoted(label), " isn't compared here"),
                                  report::Enumerated(labels, 12));
    }
    return absl::OkStatus();
  }

  storage::Store* const store_;
  const GridQuery& query_;
  const std::map<std::string, Operand>& baseline_;
  const lookup::Cancelled& cancelled_;
  std::set<std::string> ids_;
  std::map<std::string, TrainedGrid> grids_;  // by ID; entries don't move
  const TrainedGrid* first_ = nullptr;
  // By label, in the operands' order: the settings that are the same.
  std::vector<std::pair<std::string, std::vector<Setting>>> settings_;
  std::map<std::set<std::string>, size_t> by_specs_;
  std::map<std::string, size_t> by_label_;  // including merged ones
  bool margins_differ_ = false;
  std::vector<std::string> same_;
  std::vector<TunedAxis> tuned_;
  TrainedGrid merged_;
};

}  // namespace

absl::StatusOr<TrainedGrid> MergeGrids(storage::Store* store, const std::vector<Operand>& operands,
                                       const std::map<std::string, Operand>& baseline,
                                       const GridQuery& query, const lookup::Cancelled& cancelled) {
  return Merger(store, query, baseline, cancelled).Run(operands);
}

}  // namespace ablate::results
