#include "server/results/diff.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "proto/reflect/spec_yaml.h"
#include "server/analysis/subjects.h"
#include "server/experiment/axes.h"
#include "server/experiment/field_values.h"
#include "server/lookup/errors.h"
#include "server/results/operand.h"
#include "server/results/part_cells.h"
#include "server/results/trained_grid.h"

namespace ablate::results {
namespace {

// Collects the values at each path, in the order in which they appear.
class Occurring {
 public:
  void Add(const std::string& path, const std::string& value) {
    if (seen_.emplace(path, value).second) values_[path].push_back(value);
  }
  void Add(const spec::FieldValues& values) {
    for (const auto& [path, value] : values) Add(path, value);
  }
  const std::map<std::string, std::vector<std::string>>& values() const { return values_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::pair<std::string, std::string>> seen_;
};

// One side of a diff.
struct Side {
  std::string name;  // with whole IDs
  Occurring fields;
  bool whole = false;  // an experiment
  Occurring of_spec;   // the spec's content except its base
};

absl::Status AddRun(const storage::RunRecord& run, Occurring* fields) {
  ASSIGN_OR_RETURN(const auto stored, analysis::SpecOf(run));
  fields->Add(spec::ValuesOf(stored.spec()));
  return absl::OkStatus();
}

// Adds how a run was trained, once it was.
void AddProvenance(const storage::RunRecord& run, Occurring* fields) {
  if (run.worker.empty()) return;
  fields->Add("version", run.build);
  fields->Add("device", run.device);
  if (!run.environment.empty()) fields->Add("environment", run.environment);
}

// Adds the spec's content except its base.
void AddSpec(const v1::ExperimentSpec& spec, Occurring* fields) {
  v1::ExperimentSpec rest = spec;
  for (const char* elsewhere : {"name", "base", "axes", "seeds"}) {
    rest.GetReflection()->ClearField(&rest, rest.GetDescriptor()->FindFieldByName(elsewhere));
  }
  for (const v1::Window& window : spec.report().summaries()) {
    fields->Add("report.summaries", reflect::FlowYaml(window));
  }
  for (const v1::AnalysisSpec& analysis : spec.analyses()) {
    fields->Add("analyses", reflect::FlowYaml(analysis));
  }
  rest.mutable_report()->clear_summaries();
  rest.clear_analyses();
  fields->Add(spec::ValuesOf(rest));
  spec::Problems problems;  // none, or it would not be stored
  for (const spec::AxisPlan& axis : spec::ReadAxes(spec, &problems)) {
    const std::string path = absl::StrCat("axes.", axis.name, axis.tuned ? " (tuned)" : "");
    for (const spec::Point& point : axis.points) fields->Add(path, point.label);
  }
}

absl::StatusOr<Side> ReadRun(const lookup::View& view, absl::string_view name,
                             absl::string_view field) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindRun(view, name, field));
  ASSIGN_OR_RETURN(const auto run, view.store->GetRun(id));
  Side side;
  side.name = lookup::RunName(id);
  side.fields.Add("seeds", absl::StrCat(run.seed));
  AddProvenance(run, &side.fields);
  RETURN_IF_ERROR(AddRun(run, &side.fields));
  return side;
}

absl::StatusOr<Side> ReadOperand(const lookup::View& view, absl::string_view name,
                                 absl::string_view field, const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(const auto operand, FindOperand(view, name, field));
  ASSIGN_OR_RETURN(const auto experiment, LoadExperiment(view.store, operand.experiment));
  ASSIGN_OR_RETURN(const auto cells, CellsOfPart(view, experiment, operand.part, field, cancelled));
  Side side;
  side.name = lookup::ExperimentName(OperandName(operand.experiment, operand.part));
  side.whole = operand.part.empty();
  AddSpec(experiment.spec, &side.of_spec);
  const storage::CellRecord* before = nullptr;
  for (const storage::CellRecord& cell : cells) {
    if (cancelled()) return lookup::CallCancelled();
    side.fields.Add("seeds", absl::StrCat(cell.seed));
    ASSIGN_OR_RETURN(const auto run, view.store->GetRun(cell.run));
    AddProvenance(run, &side.fields);
    // Seeds of one combination are adjacent and differ in nothing else.
    const bool same = before != nullptr && before->labels == cell.labels;
    before = &cell;
    if (same) continue;
    if (absl::Status added = AddRun(run, &side.fields); !added.ok()) return added;
  }
  return side;
}

absl::StatusOr<Side> ReadSide(const lookup::View& view, absl::string_view name,
                              absl::string_view field, const lookup::Cancelled& cancelled) {
  return absl::StartsWith(name, "runs/") ? ReadRun(view, name, field)
                                         : ReadOperand(view, name, field, cancelled);
}

// Adds every path at which the two sides differ, in ascending order.
void AddFields(const Occurring& left, const Occurring& right,
               v1::DiffExperimentsResponse* response) {
  std::set<std::string> paths;
  for (const Occurring* side : {&left, &right}) {
    for (const auto& [path, values] : side->values()) paths.insert(path);
  }
  const auto at = [](const Occurring& side, const std::string& path) {
    const auto found = side.values().find(path);
    return found == side.values().end() ? std::vector<std::string>() : found->second;
  };
  for (const std::string& path : paths) {
    const std::vector<std::string> own = at(left, path), other = at(right, path);
    if (own == other) continue;
    v1::FieldDifference* field = response->add_fields();
    field->set_path(path);
    *field->mutable_left() = {own.begin(), own.end()};
    *field->mutable_right() = {other.begin(), other.end()};
  }
}

}  // namespace

absl::StatusOr<v1::DiffExperimentsResponse> Diff(const lookup::View& view,
                                                 const v1::DiffExperimentsRequest& request,
                                                 const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(const auto left, ReadSide(view, request.left(), "left", cancelled));
  ASSIGN_OR_RETURN(const auto right, ReadSide(view, request.right(), "right", cancelled));
  v1::DiffExperimentsResponse response;
  response.set_left(left.name);
  response.set_right(right.name);
  AddFields(left.fields, right.fields, &response);
  if (left.whole && right.whole) AddFields(left.of_spec, right.of_spec, &response);
  return response;
}

}  // namespace ablate::results
