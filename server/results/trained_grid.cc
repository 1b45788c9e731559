#include "server/results/trained_grid.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/analysis/document_facts.h"
#include "server/analysis/subjects.h"
#include "server/config/fields.h"
#include "server/config/program.h"
#include "server/experiment/analysis.h"
#include "server/experiment/axes.h"
#include "server/experiment/field_values.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/notes.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/wording.h"

namespace ablate::results {
namespace {

using google::protobuf::Value;

constexpr absl::string_view kPrimaryField = "report.primary";
constexpr absl::string_view kOtherPrimary =
    ". Name one of them as key, or submit the file again with it as report.primary";

// Returns the label of an axis that leaves the base unchanged, if any.
std::optional<std::string> BaseLabel(const spec::AxisPlan& axis, const v1::BaseSpec& base,
                                     const spec::FieldValues& filled, bool cuda) {
  for (const spec::Point& point : axis.points) {
    if (spec::FilledValues(base, point.writes, cuda) == filled) return point.label;
  }
  return std::nullopt;
}

std::vector<double> NumbersOf(const v1::Axis& axis) {
  std::vector<double> numbers;
  for (const Value& value : axis.values()) {
    if (value.kind_case() != Value::kNumberValue) return {};
    numbers.push_back(value.number_value());
  }
  return numbers;
}

absl::Status NotAnAxis(const std::string& field, const std::string& name,
                       const std::vector<std::string>& axes, absl::string_view what) {
  if (axes.empty()) {
    return lookup::InvalidField(field, absl::StrCat(reflect::Quoted(name), " isn't ", what),
                                "none: the experiment has none");
  }
  return lookup::InvalidField(field,
                              absl::StrCat(reflect::Quoted(name), " isn't ", what,
                                           reflect::DidYouMean(name, axes, " (", ")")),
                              reflect::AnyOf(axes));
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the axes in the spec's order. `cuda` says how device auto was resolved.
std::vector<report::Axis> AxesOf(const v1::ExperimentSpec& spec, bool cuda) {
  spec::Problems problems;
  const std::vector<spec::AxisPlan> plans = spec::ReadAxes(spec, &problems);
  const spec::FieldValues filled = spec::FilledValues(spec.base(), {}, cuda);
  std::vector<report::Axis> axes;
  for (size_t i = 0; i < plans.size(); ++i) {
    report::Axis axis;
    axis.name = plans[i].name;
    for (const spec::Point& point : plans[i].points) axis.labels.push_back(point.label);
    axis.tuned = plans[i].selects();
    axis.values = NumbersOf(spec.axes(static_cast<int>(i)));
    axis.base = BaseLabel(plans[i], spec.base(), filled, cuda);
    axes.push_back(std::move(axis));
  }
  return axes;
}

// Returns INVALID_ARGUMENT for a baseline without an axis, with the axes that have it as a label,
// also if their name is before it, as in the names of cells.
absl::Status NoAxis(const std::string& given, const std::vector<std::string>& axes,
                    const std::map<std::string, const std::vector<std::string>*>& labels) {
  if (axes.empty()) return NotAnAxis("baseline", given, axes, "a label of an axis");
  std::vector<std::string> meant;
  for (const std::string& axis : axes) {
    for (const std::string& label : *labels.at(axis)) {
      if (given != label && given != axis + label) continue;
      meant.push_back(absl::StrCat(axis, "=", label));
    }
  }
  const std::string hint =
      meant.empty() ? "" : absl::StrCat(" (did you mean ", reflect::AnyOf(meant), "?)");
  return lookup::InvalidField("baseline",
                              absl::StrCat(reflect::Quoted(given), " has no axis", hint),
                              absl::StrCat("AXIS=LABEL, with the axis ", reflect::AnyOf(axes)));
}

// Returns INVALID_ARGUMENT at field `by` or `baseline` for an unknown axis or label, or a tuned
// axis.
absl::Status CheckAgainstAxes(const std::vector<report::Axis>& axes, const std::string& by,
                              const std::map<std::string, std::string>& baseline) {
  std::vector<std::string> names, compared;
  std::map<std::string, const std::vector<std::string>*> labels;
  for (const report::Axis& axis : axes) {
    names.push_back(axis.name);
    labels[axis.name] = &axis.labels;
    if (by.empty() ? !axis.tuned : axis.name == by) compared.push_back(axis.name);
  }
  if (!by.empty() && !Contains(names, by)) return NotAnAxis("by", by, names, "an axis");
  for (const auto& [name, label] : baseline) {
    if (name.empty()) return NoAxis(label, compared, labels);
    if (!Contains(compared, name)) {
      return NotAnAxis("baseline", name, compared, "an axis that is compared");
    }
    if (Contains(*labels[name], label)) continue;
    const std::string what = absl::StrCat("a label of ", name);
    return NotAnAxis(absl::StrCat("baseline", reflect::Subscript(name)), label, *labels[name],
                     what);
  }
  return absl::OkStatus();
}

// Selects a key's value at a step or, without one, at each run's last point.
struct ValueQuery {
  std::string key;
  std::optional<uint32_t> at;
};

using RunValue = absl::StatusOr<std::optional<double>>;

// Returns the last value from `first_step` to `last_step`.
RunValue ReadLast(storage::Store* store, const storage::SeriesQuery& query) {
  std::optional<double> last;
  RETURN_IF_ERROR(store->ReadSeries(
      query, [&last](const std::vector<uint32_t>&, const std::vector<double>& values) {
        if (!values.empty()) last = values.back();
        return true;
      }));
  return last;
}

// Steps of a series around a missing one.
struct Neighbours {
  std::optional<uint32_t> first, before, after, last;
};

absl::StatusOr<Neighbours> FindNeighbours(storage::Store* store,
                                          const analysis::AnalysisMetrics& metrics,
                                          const std::string& run, const std::string& key,
                                          uint32_t at) {
  Neighbours found;
  SeriesCursor cursor(store, nullptr);
  cursor.Add(&metrics);
  cursor.OpenSeries(run, key);
  RETURN_IF_ERROR(
      cursor
          .Read([&found, at](const std::vector<uint32_t>& steps, const std::vector<double>&) {
            for (const uint32_t step : steps) {
              if (!found.first.has_value()) found.first = step;
              if (step < at) found.before = step;
              if (step > at && !found.after.has_value()) found.after = step;
              found.last = step;
            }
            return true;
          })
          .status());
  return found;
}

std::string AllowedSteps(const Neighbours& steps) {
  std::vector<std::string> nearest;
  for (const auto& step : {steps.before, steps.after}) {
    if (step.has_value()) nearest.push_back(absl::StrCat(*step));
  }
  return absl::StrCat("-1 for the end, or a step with a point: nearest ",
                      absl::StrJoin(nearest, " and "), ", from ", *steps.first, " to ",
                      *steps.last);
}

// Returns the value of a number of analyses, which are all in memory.
RunValue ValueOf(const analysis::AnalysisMetrics& metrics, const ValueQuery& query,
                 const std::string& run) {
  const analysis::Points* const points = metrics.Find(run, query.key);
  if (points == nullptr) return std::nullopt;
  if (!query.at.has_value()) return points->values.back();
  return analysis::ValueAt(*points, *query.at);
}

// Returns a run's value; nothing if the run has no such point. `summaries` are the run's; for the
// last point they suffice.
RunValue ReadValue(storage::Store* store, const ValueQuery& query, const std::string& run,
                   const storage::RunSummaries& summaries) {
  if (!summaries.damage.empty()) return absl::DataLossError(summaries.damage);
  const auto summary =
      std::find_if(summaries.keys.begin(), summaries.keys.end(),
                   [&query](const storage::Summary& one) { return one.key == query.key; });
  if (summary == summaries.keys.end() || summary->count == 0) return std::nullopt;
  if (query.at.has_value()) return ReadLast(store, {run, query.key, *query.at, *query.at});
  return summary->last;
}

// Returns INVALID_ARGUMENT about a key that no run of `experiment` has, or a step, with the nearest
// ones of `run`. `field` is the one that named the key.
absl::Status NoSuchValue(storage::Store* store, const analysis::AnalysisMetrics& metrics,
                         const std::string& experiment, absl::string_view field,
                         const ValueQuery& query, const std::string& run) {
  if (query.at.has_value()) {
    ASSIGN_OR_RETURN(const auto steps, FindNeighbours(store, metrics, run, query.key, *query.at));
    if (steps.first.has_value()) {
      return lookup::InvalidField("at",
                                  absl::StrCat("no finished run of ", experiment, " has ",
                                               query.key, " at step ", *query.at),
                                  AllowedSteps(steps));
    }
  }
  return NoSuchKey(store, field, query.key, experiment,
                   field == kPrimaryField ? kOtherPrimary : "");
}

// Returns a worker's device without its number of lanes, on which no number depends: "AMD EPYC" of
// "AMD EPYC, 16 lanes".
std::string WithoutLanes(const std::string& device) {
  const size_t comma = device.rfind(", ");
  const bool counts = absl::EndsWith(device, " lanes") || absl::EndsWith(device, " lane");
  return counts ? device.substr(0, comma) : device;
}

report::RunOutcome OutcomeOf(storage::RunState state) {
  switch (state) {
    case storage::RunState::kDone:
      return report::RunOutcome::kDone;
    case storage::RunState::kDiverged:
      return report::RunOutcome::kDiverged;
    case storage::RunState::kFailed:
      return report::RunOutcome::kFailed;
    case storage::RunState::kQueued:
    case storage::RunState::kLeased:
      return report::RunOutcome::kUnfinished;
    case storage::RunState::kCancelled:
      break;
  }
  return report::RunOutcome::kMissing;
}

// Returns true if training doesn't record the key.
bool IsOfAnalyses(const std::string& key) {
  const std::string family = key.substr(0, key.find('/'));
  const auto recorded = spec::RecordedFamilies();
  return std::find(recorded.begin(), recorded.end(), family) == recorded.end();
}

double Seconds(storage::Micros micros) { return static_cast<double>(micros) / 1e6; }

// Returns why the value isn't the planned one; "" if it is.
std::string WhyExploratory(const v1::ExperimentSpec& spec, const ValueQuery& value) {
  if (value.key != PrimaryMetric(spec)) {
    return absl::StrCat("report.primary is ", PrimaryMetric(spec));
  }
  return value.at.has_value() ? "planned: the end of the runs" : "";
}

// Reads the cells of one experiment.
class Loader {
 public:
  Loader(storage::Store* store, StoredExperiment experiment, const GridQuery& query,
         const lookup::Cancelled& cancelled)
      : store_(store), query_(query), cancelled_(cancelled) {
    grid_.record = std::move(experiment.record);
    grid_.spec = std::move(experiment.spec);
    spec::Problems problems;
    plans_ = spec::ReadAxes(grid_.spec, &problems);
    const v1::ExperimentSpec& reference =
        query.reference == nullptr ? grid_.spec : query.reference->spec;
    written_base_ = spec::ValuesOf(reference.base());
  }

  absl::StatusOr<TrainedGrid> Run() {
    RETURN_IF_ERROR(ReadQuery());
    ASSIGN_OR_RETURN(grid_.metrics,
                     analysis::AnalysisMetrics::Load(store_, grid_.record.id, MetricKeys()));
    RETURN_IF_ERROR(lookup::VisitCells(
        store_, grid_.record.id,
        [this](const std::vector<storage::CellRecord>& page) -> absl::StatusOr<bool> {
          RETURN_IF_ERROR(AddCells(page));
          return true;
        }));
    RETURN_IF_ERROR(CheckPresence());
    return std::move(grid_);
  }

 private:
  // Keys to load; empty: all.
  std::vector<std::string> MetricKeys() const {
    if (query_.analyses == AnalysisNumbers::kAll) return {};
    std::vector<std::string> keys = {value_.key};
    for (const v1::Window& window : grid_.spec.report().summaries()) keys.push_back(window.key());
    return keys;
  }

  absl::Status ReadQuery() {
    if (!query_.key.empty() && !text::IsPrintable(query_.key, storage::kMaxKeyBytes)) {
      return lookup::InvalidField("key",
                                  absl::StrCat(reflect::Quoted(query_.key), " isn't a valid key"),
                                  "a metric such as eval/loss");
    }
    value_ = {query_.key.empty() ? PrimaryMetric(grid_.spec) : query_.key, query_.at};
    report::ComparisonInput& input = grid_.input;
    input.key = value_.key;
    input.source = SourceOf(grid_.spec);
    input.at = value_.at;
    input.better = BetterOf(grid_.spec, value_.key);
    input.scale = ScaleOf(grid_.spec, value_.key);
    input.axes = AxesOf(grid_.spec, false);
    input.baseline = query_.baseline;
    input.by = query_.by;
    input.exploratory = WhyExploratory(grid_.spec, value_);
    const v1::ReportSpec& report = grid_.spec.report();
    if (input.exploratory.empty() && report.has_margin()) input.margin = report.margin();
    const bool tuned =
        !query_.choice_key.empty() ||
        std::any_of(input.axes.begin(), input.axes.end(), [this](const report::Axis& axis) {
          return axis.tuned && axis.name != query_.by;
        });
    const std::string choice =
        query_.choice_key.empty() ? ChoiceMetric(grid_.spec) : query_.choice_key;
    if (tuned && (choice != value_.key || value_.at.has_value())) {
      input.choice_key = choice;
      input.choice_better = BetterOf(grid_.spec, choice);
    }
    return CheckAgainstAxes(input.axes, query_.by, query_.baseline);
  }

  absl::Status AddCells(const std::vector<storage::CellRecord>& cells) {
    std::vector<std::string> runs;
    runs.reserve(cells.size());
    for (const storage::CellRecord& cell : cells) runs.push_back(cell.run);
    ASSIGN_OR_RETURN(const auto summaries, store_->Summaries(runs));
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cancelled_()) return lookup::CallCancelled();
      if (absl::Status added = AddCell(cells[i], summaries[i]); !added.ok()) return added;
    }
    return absl::OkStatus();
  }

  absl::Status AddCell(const storage::CellRecord& record, const storage::RunSummaries& summaries) {
    ASSIGN_OR_RETURN(const auto run, store_->GetRun(record.run));
    report::Cell cell;
    for (const auto& [axis, label] : record.labels) cell.labels.push_back(label);
    cell.seed = record.seed;
    cell.first_experiment = record.first_experiment;
    cell.outcome = OutcomeOf(run.state);
    if (cell.outcome == report::RunOutcome::kDone) {
      auto value = grid_.metrics.Has(value_.key) ? ValueOf(grid_.metrics, value_, record.run)
                                                 : ReadValue(store_, value_, record.run, summaries);
      if (!value.ok() && !absl::IsDataLoss(value.status())) return value.status();
      if (value.ok() && !grid_.input.choice_key.empty()) {
        auto choice = ReadValue(store_, {grid_.input.choice_key, {}}, record.run, summaries);
        if (!choice.ok() && !absl::IsDataLoss(choice.status())) return choice.status();
        if (choice.ok()) cell.choice = *choice;
      }
      if (value.ok()) {
        cell.value = *value;
        if (done_.empty()) done_ = record.run;
      } else {
        cell.outcome = report::RunOutcome::kMissing;
        cell.damage = std::string(value.status().message());
        any_damage_ = true;
      }
      any_value_ = any_value_ || cell.value.has_value();
    }
    RETURN_IF_ERROR(ReadCombination(cell.labels, run));
    cell.changed = changed_;
    cell.follows = follows_;
    cell.scored = scored_;
    NoteHighStart(summaries, &cell);
    Describe(run, &cell);
    grid_.input.cells.push_back(std::move(cell));
    grid_.cells.push_back(record);
    grid_.spec_hashes.push_back(spec_hash_);
    grid_.held_out.push_back(held_out_);
    return absl::OkStatus();
  }

  // Returns a run's differences from the base. A field that only one of them has doesn't apply to
  // the other, because a part is switched off or the optimizer differs: the change is that. Tasks,
  // however, differ only in their fields.
  static spec::FieldValues ChangedFrom(const spec::FieldValues& base, const v1::BaseSpec& run) {
    const spec::FieldValues values = spec::ValuesOf(run);
    spec::FieldValues changed;
    for (const auto& [path, value] : spec::Difference(values, base)) {
      const bool shared = values.count(path) > 0 && base.count(path) > 0;
      if (shared || absl::StartsWith(path, "task.")) changed.emplace(path, value);
    }
    return changed;
  }

  // Returns the paths of `changed_` at which the settings with these labels, one per axis, leave
  // the file's value unchanged.
  std::set<std::string> FollowsFor(const std::vector<std::string>& labels) const {
    v1::BaseSpec written = grid_.spec.base();
    for (size_t i = 0; i < std::min(labels.size(), plans_.size()); ++i) {
      for (const spec::Point& point : plans_[i].points) {
        std::vector<spec::Problem> problems;  // none, or it would not be stored
        if (point.label == labels[i]) spec::Apply(point.writes, &written, &problems);
      }
    }
    const spec::FieldValues difference = spec::Difference(spec::ValuesOf(written), written_base_);
    std::set<std::string> follows;
    for (const auto& [path, value] : changed_) {
      if (difference.count(path) == 0) follows.insert(path);
    }
    return follows;
  }

  // Seeds of one combination are adjacent and differ in nothing else.
  absl::Status ReadCombination(const std::vector<std::string>& labels,
                               const storage::RunRecord& run) {
    if (!grid_.cells.empty() && labels == labels_) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto stored, analysis::SpecOf(run));
    const v1::BaseSpec& run_spec = stored.spec();
    if (grid_.cells.empty()) FillBase(run_spec);
    labels_ = labels;
    changed_ = ChangedFrom(grid_.base, run_spec);
    follows_ = FollowsFor(labels);
    if (run_spec.has_imported()) {
      spec_hash_ = spec::ShortHash(spec::ImportedIdentity(run_spec));
      return absl::OkStatus();
    }
    if (run_spec.has_program()) {
      spec_hash_ = spec::ShortHash(spec::ProgramIdentity(
          run_spec,
          {.files_sha256 = run.dataset_blob, .data_sha256 = run.data_blob, .environment = ""}));
      return absl::OkStatus();
    }
    // If the store has no data sets, their names are used.
    const v1::TaskSpec& task = run_spec.task();
    const spec::NamedDataset dataset = spec::DatasetOf(task);
    const std::string name = dataset.name == nullptr ? "" : *dataset.name;
    const std::string& data = run.dataset_blob.empty() ? name : run.dataset_blob;
    ASSIGN_OR_RETURN(const auto longest,
                     LongestDocument(task.documents().dataset(), run_spec.model().context()));
    spec_hash_ =
        spec::ShortHash(spec::Canonical(run_spec, run.dataset_blob, run.initial_blob).RunText(0));
    scored_ = spec::ScoredData(run_spec, data, longest, value_.key);
    held_out_ = spec::ScoredData(run_spec, data, longest, "eval/loss");
    uniform_ = UniformLoss(task, run.dataset_blob);
    return absl::OkStatus();
  }

  // The first evaluation is the one before the first step.
  void NoteHighStart(const storage::RunSummaries& summaries, report::Cell* cell) const {
    const auto loss = std::find_if(summaries.keys.begin(), summaries.keys.end(),
                                   [](const auto& one) { return one.key == "eval/loss"; });
    if (!uniform_.has_value() || loss == summaries.keys.end()) return;
    if (loss->count == loss->nonfinite || loss->first <= *uniform_ + spec::kFarAboveUniform) return;
    cell->high_start = loss->first;
    cell->uniform = *uniform_;
  }

  // Returns the loss of a uniform guess over the vocabulary; nothing if its data set is gone.
  std::optional<double> UniformLoss(const v1::TaskSpec& task, const std::string& dataset_blob) {
    const std::string name = absl::StrCat(spec::TaskName(task), " ", dataset_blob);
    const auto known = vocabularies_.find(name);
    if (!dataset_blob.empty() && known != vocabularies_.end()) return known->second;
    const auto shape = analysis::ShapeOfTask(store_, task, dataset_blob);
    std::optional<double> loss;
    if (shape.ok() && shape->vocabulary > 1) loss = std::log(shape->vocabulary);
    vocabularies_[name] = loss;
    return loss;
  }

  // Returns the characters of a data set's longest document; 0 if unknown. An unreadable text is an
  // error only if contexts differ, because verdicts depend on whether they cut different documents.
  absl::StatusOr<uint64_t> LongestDocument(const std::string& name, uint32_t context) {
    if (name.empty()) return 0;
    const auto [known, added] = documents_.try_emplace(name);
    Documents& documents = known->second;
    if (added) {
      documents.context = context;
      const auto dataset = lookup::FindDataset({store_, storage::kServer}, name, "dataset");
      if (dataset.ok()) documents.facts = analysis::FactsOf(store_, *dataset, false);
    }
    if (documents.facts.ok()) return documents.facts->longest;
    if (context != documents.context) return documents.facts.status();
    return 0;
  }

  // Resolves the base on the device kind of the first cell, which `auto` was resolved to
  // everywhere, and with its trainer.
  void FillBase(const v1::BaseSpec& first) {
    const bool cuda = first.training().device() == v1::Device::cuda;
    if (cuda) grid_.input.axes = AxesOf(grid_.spec, true);
    if (query_.reference != nullptr) {
      grid_.base = query_.reference->base;
      return;
    }
    v1::BaseSpec base = grid_.spec.base();
    const auto trainer = base.training().trainer();
    const bool resolved = trainer == v1::Trainer::torch || trainer == v1::Trainer::native;
    if (!resolved && spec::IsModel(first)) {
      base.mutable_training()->set_trainer(first.training().trainer());
    }
    grid_.base = spec::FilledValues(base, {}, cuda);
  }

  void Describe(const storage::RunRecord& run, report::Cell* cell) const {
    if (run.parameters > 0) cell->parameters = static_cast<int64_t>(run.parameters);
    if (run.worker.empty()) return;  // nothing has trained it yet
    cell->trainer = run.trainer;
    cell->version = run.build;
    cell->device = WithoutLanes(run.device);
    cell->environment = run.environment;
    if (run.spent.device_time <= 0) return;
    const double seconds = Seconds(run.spent.device_time);
    cell->device_seconds = seconds;
    cell->contended_seconds = Seconds(run.spent.contended_time);
    if (run.spent.tokens > 0) {
      cell->tokens_per_second = static_cast<double>(run.spent.tokens) / seconds;
    }
  }

  absl::Status CheckPresence() const {
    // With damage it is unknown which values existed.
    if (any_value_ || any_damage_) return absl::OkStatus();
    // A primary number of analyses that aren't computed yet, or have failed.
    const bool trains_models = spec::IsModel(grid_.spec.base());
    if (query_.key.empty() && trains_models && IsOfAnalyses(value_.key)) return absl::OkStatus();
    if (!done_.empty()) {
      return NoSuchValue(store_, grid_.metrics, grid_.record.id,
                         query_.key.empty() ? kPrimaryField : "key", value_, done_);
    }
    if (query_.key.empty()) return absl::OkStatus();
    return CheckKnownKey(store_, "key", value_.key, grid_.record.id);
  }

  storage::Store* const store_;
  const GridQuery& query_;
  const lookup::Cancelled& cancelled_;
  TrainedGrid grid_;
  std::vector<spec::AxisPlan> plans_;  // the spec's axes
  spec::FieldValues written_base_;     // base without defaults, from which cells differ
  ValueQuery value_;
  std::string done_;  // some DONE run
  bool any_value_ = false;
  bool any_damage_ = false;
  // State of the last combination that was read:
  std::vector<std::string> labels_;
  spec::FieldValues changed_, scored_, held_out_;
  std::string spec_hash_;
  std::set<std::string> follows_;
  std::optional<double> uniform_;
  std::map<std::string, std::optional<double>> vocabularies_;  // uniform losses by task and data
  struct Documents {
    absl::StatusOr<engine::DocumentFacts> facts = engine::DocumentFacts();
    uint32_t context = 0;  // of the first combination that has them
  };
  std::map<std::string, Documents> documents_;  // by data set
};

// Finds the cells of a grid by labels and seed.
class CellPlaces {
 public:
  explicit CellPlaces(const TrainedGrid& grid) {
    for (size_t i = 0; i < grid.cells.size(); ++i) {
      const storage::CellRecord& cell = grid.cells[i];
      places_[{Labels(cell.labels.begin(), cell.labels.end()), cell.seed}] = i;
    }
  }

  size_t Of(const report::Comparison& comparison, const report::ComparisonRow& row,
            const report::SeedRun& run) const {
    Labels labels;
    for (size_t i = 0; i < row.labels.size(); ++i) labels[comparison.row_axes[i]] = row.labels[i];
    for (size_t i = 0; i < run.chosen.size(); ++i) {
      labels[comparison.tuned_axes[i]] = run.chosen[i];
    }
    return places_.at({labels, run.seed});
  }

 private:
  using Labels = std::map<std::string, std::string>;
  std::map<std::pair<Labels, uint32_t>, size_t> places_;
};

}  // namespace

std::string FieldOf(const TrainedGrid& grid, size_t cell, const std::string& path) {
  const auto& changed = grid.input.cells[cell].changed;
  if (const auto own = changed.find(path); own != changed.end()) return own->second;
  const auto base = grid.base.find(path);
  return base == grid.base.end() ? std::string() : base->second;
}

std::optional<std::string> SharedValue(const TrainedGrid& grid, const std::string& path) {
  std::optional<std::string> shared;
  for (size_t cell = 0; cell < grid.input.cells.size(); ++cell) {
    const std::string value = FieldOf(grid, cell, path);
    if (value.empty() || (shared.has_value() && *shared != value)) return std::nullopt;
    shared = value;
  }
  return shared;
}

std::vector<std::vector<size_t>> CellsOfRows(const TrainedGrid& grid,
                                             const report::Comparison& comparison) {
  const CellPlaces places(grid);
  std::vector<std::vector<size_t>> rows;
  for (const report::ComparisonRow& row : comparison.rows) {
    std::vector<size_t>& cells = rows.emplace_back();
    for (const report::SeedRun& run : row.runs) cells.push_back(places.Of(comparison, row, run));
  }
  return rows;
}

std::vector<std::vector<ChosenRun>> ChosenRuns(const TrainedGrid& grid,
                                               const report::Comparison& comparison) {
  const CellPlaces places(grid);
  std::vector<std::vector<ChosenRun>> rows;
  for (const report::ComparisonRow& row : comparison.rows) {
    std::vector<ChosenRun>& chosen = rows.emplace_back();
    for (const std::vector<report::SeedRun>* runs : {&row.runs, &row.without_value}) {
      for (const report::SeedRun& run : *runs) {
        chosen.push_back({run.seed, places.Of(comparison, row, run), run.diverged});
      }
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const ChosenRun& a, const ChosenRun& b) { return a.seed < b.seed; });
  }
  return rows;
}

std::vector<ChosenRun> Converged(const std::vector<ChosenRun>& row) {
  std::vector<ChosenRun> converged;
  std::copy_if(row.begin(), row.end(), std::back_inserter(converged),
               [](const ChosenRun& run) { return !run.diverged; });
  return converged;
}

std::string PrimaryMetric(const v1::ExperimentSpec& spec) {
  return spec.report().has_primary() ? spec.report().primary() : "eval/loss";
}

std::string ChoiceMetric(const v1::ExperimentSpec& spec) {
  const std::string primary = PrimaryMetric(spec);
  const bool is_evaluation = absl::StartsWith(primary, "eval/");
  return is_evaluation || !spec::IsModel(spec.base()) ? primary : "eval/loss";
}

report::MetricSource SourceOf(const v1::ExperimentSpec& spec) {
  return spec::IsModel(spec.base()) ? report::MetricSource::kTrainer
                                    : report::MetricSource::kProgram;
}

report::Better BetterOf(const v1::ExperimentSpec& spec, const std::string& key) {
  if (spec.report().has_better() && key == PrimaryMetric(spec)) {
    return spec.report().better() == v1::Better::higher ? report::Better::kHigher
                                                        : report::Better::kLower;
  }
  // FAMILY/NAME and LABEL/PERTURBATION@LEVEL/NAME are of a whole model; the loss without a part has
  // a place after it.
  std::vector<absl::string_view> parts = absl::StrSplit(key, '/');
  if (parts.size() == 3 && absl::StrContains(parts[1], '@')) parts.erase(parts.begin() + 1);
  if (parts.size() != 2) return report::Better::kNeither;
  if (parts[1] == "loss" || parts[1] == "ema_loss") return report::Better::kLower;
  return parts[1] == "accuracy" ? report::Better::kHigher : report::Better::kNeither;
}

report::Scale ScaleOf(const v1::ExperimentSpec& spec, const std::string& key) {
  if (!spec.report().has_scale() || key != PrimaryMetric(spec))
    return report::ScaleOfMetric(key, SourceOf(spec));
  return spec.report().scale() == v1::Scale::ratio ? report::Scale::kRatio
                                                   : report::Scale::kDifference;
}

absl::StatusOr<StoredExperiment> LoadExperiment(storage::Store* store, const std::string& id) {
  ASSIGN_OR_RETURN(auto record, store->GetExperiment(id));
  StoredExperiment experiment;
  if (!experiment.spec.ParseFromString(record.spec)) {
    return absl::DataLossError(absl::StrCat("the spec of ", record.id, " can't be read"));
  }
  experiment.spec.set_name(record.name);
  experiment.record = std::move(record);
  return experiment;
}

absl::StatusOr<TrainedGrid> LoadGrid(storage::Store* store, StoredExperiment experiment,
                                     const GridQuery& query, const lookup::Cancelled& cancelled) {
  const std::string id = experiment.record.id;
  auto grid = Loader(store, std::move(experiment), query, cancelled).Run();
  if (!absl::IsNotFound(grid.status())) return grid;
  // A run is gone if its experiment is, which is what the request named.
  const auto there = store->GetExperiment(id);
  return there.ok() ? grid : there.status();
}

absl::Status VisitCurves(
    storage::Store* store, const TrainedGrid& grid, const std::string& key,
    const std::vector<size_t>& cells, const lookup::Cancelled& cancelled,
    const std::function<absl::Status(size_t cell, const analysis::Points&)>& visit,
    Damages* damages) {
  SeriesCursor cursor(store, damages);
  cursor.Add(&grid.metrics);
  for (const size_t cell : cells) {
    if (cancelled()) return lookup::CallCancelled();
    analysis::Points points;
    cursor.OpenSeries(grid.cells[cell].run, key);
    ASSIGN_OR_RETURN(const auto end, cursor.Read([&](const std::vector<uint32_t>& steps,
                                                     const std::vector<double>& values) {
      points.steps.insert(points.steps.end(), steps.begin(), steps.end());
      points.values.insert(points.values.end(), values.begin(), values.end());
      return !cancelled();
    }));
    if (end == SeriesEnd::kStopped) return lookup::CallCancelled();
    if (end == SeriesEnd::kDamaged || points.steps.empty()) continue;
    if (absl::Status visited = visit(cell, points); !visited.ok()) return visited;
  }
  return absl::OkStatus();
}

}  // namespace ablate::results
