#include "server/submit/related.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/reflect/spec_yaml.h"
#include "proto/reflect/text.h"
#include "server/analysis/subjects.h"
#include "server/experiment/axes.h"
#include "server/experiment/field_values.h"
#include "server/lookup/errors.h"
#include "server/report/compare/wording.h"
#include "server/results/trained_grid.h"

namespace ablate::submit {
namespace {

constexpr uint32_t kComparedExperiments = 20;
constexpr uint32_t kAllCells = std::numeric_limits<uint32_t>::max();
constexpr size_t kNamedCells = 3;

bool HasSpec(const storage::ExperimentRecord& record, v1::ExperimentSpec spec) {
  v1::ExperimentSpec stored;
  if (!stored.ParseFromString(record.spec)) return false;
  stored.set_name(record.name);
  // Equal cells have equal seeds, however they are written.
  stored.clear_seeds();
  spec.clear_seeds();
  return google::protobuf::util::MessageDifferencer::Equals(stored, spec);
}

// Returns true if the cells are the plan's, with the same runs.
bool HasCells(const std::vector<storage::CellRecord>& cells, const Plan& plan) {
  if (cells.size() != plan.run_of_cell.size()) return false;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool equal = cells[i].name == plan.resolution.cells[i].name &&
                       cells[i].run == plan.known[plan.run_of_cell[i]].run;
    if (!equal) return false;
  }
  return true;
}

void AddProblem(const std::string& value, const std::string& complaint, const std::string& allowed,
                std::vector<spec::Problem>* problems) {
  problems->push_back(reflect::MakeProblem("extends", value, complaint, allowed));
}

// Returns the names of the axes, with their baselines unless they are tuned: "norm (pre), lr
// (tuned)".
std::string AxesText(const v1::ExperimentSpec& spec) {
  spec::Problems ignored;  // reported already
  std::vector<std::string> axes;
  for (const spec::AxisPlan& axis : spec::ReadAxes(spec, &ignored)) {
    const std::string first = axis.points.empty() ? "" : axis.points.front().label;
    axes.push_back(absl::StrCat(axis.name, " (", axis.tuned ? "tuned" : first, ")"));
  }
  return axes.empty() ? "none" : absl::StrJoin(axes, ", ");
}

// Returns the fields of the report that decide the verdict.
std::string DecisionText(const v1::ReportSpec& report) {
  v1::ReportSpec decision = report;
  decision.clear_smooth();
  decision.clear_summaries();
  if (!decision.has_primary()) decision.set_primary("eval/loss");
  return reflect::FlowYaml(decision);
}

// Everything that was declared before results must stay: axes with their baselines, the fields that
// decide the verdict, and analyses.
void CheckDeclared(const std::string& name, const v1::ExperimentSpec& before,
                   const v1::ExperimentSpec& after, std::vector<spec::Problem>* problems) {
  if (AxesText(before) != AxesText(after)) {
    AddProblem(name, absl::StrCat("its axes and their baselines would be ", AxesText(after)),
               absl::StrCat(AxesText(before), "; --again makes an experiment with other axes"),
               problems);
  }
  if (DecisionText(before.report()) != DecisionText(after.report())) {
    AddProblem(name, absl::StrCat("its report would be ", DecisionText(after.report())),
               absl::StrCat(DecisionText(before.report()), ", as declared before its results"),
               problems);
  }
  std::map<std::string, std::string> analyses;
  for (const v1::AnalysisSpec& analysis : after.analyses()) {
    analyses[reflect::FlowYaml(analysis)];
  }
  for (const v1::AnalysisSpec& analysis : before.analyses()) {
    const std::string text = reflect::FlowYaml(analysis);
    if (analyses.count(text) > 0) continue;
    AddProblem(name, absl::StrCat("it would lose the analysis ", text),
               "every analysis that it has", problems);
  }
}

// Returns up to three fields in which a run would differ: "model.width 32 instead of 16".
absl::StatusOr<std::string> DifferenceText(const storage::RunRecord& run,
                                           const storage::NewRun& wanted) {
  ASSIGN_OR_RETURN(const auto stored, analysis::SpecOf(run));
  v1::RunSpec planned;
  planned.ParseFromString(wanted.spec);
  spec::FieldValues before = spec::ValuesOf(stored.spec());
  const spec::FieldValues after = spec::ValuesOf(planned.spec());
  std::vector<std::string> parts;
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const auto& [path, value] : after) {
    if (before[path] != value) {
      parts.push_back(absl::StrCat(path, " ", shown(value), " instead of ", shown(before[path])));
    }
    before.erase(path);
  }
  for (const auto& [path, value] : before) {
    if (!value.empty()) parts.push_back(absl::StrCat(path, " none instead of ", value));
  }
  if (parts.empty()) return "it was trained again since, or its data or version differ";
  return report::Enumerated(parts, 3);
}

// Cells of an extended experiment that the plan lacks, or would train otherwise.
struct Missing {
  std::vector<std::string> absent, other;
  std::string difference;  // of the first of the others
};

absl::StatusOr<Missing> FindMissing(storage::Store* store, const std::string& extended,
                                    const Plan& plan) {
  ASSIGN_OR_RETURN(const auto cells, store->ListCells(extended, 0, kAllCells));
  using Key = std::pair<std::map<std::string, std::string>, uint32_t>;  // labels and seed
  std::map<Key, size_t> planned;                                        // index of its run
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const spec::ResolvedCell& cell = plan.resolution.cells[i];
    planned[{{cell.labels.begin(), cell.labels.end()}, cell.seed}] = plan.run_of_cell[i];
  }
  Missing missing;
  for (const storage::CellRecord& cell : cells) {
    const auto found = planned.find({{cell.labels.begin(), cell.labels.end()}, cell.seed});
    if (found == planned.end()) {
      missing.absent.push_back(cell.name);
      continue;
    }
    if (cell.run == plan.known[found->second].run) continue;
    const storage::NewRun& wanted = plan.runs[found->second];
    ASSIGN_OR_RETURN(const auto run, store->GetRun(cell.run));
    const bool continues =
        !run.growth.empty() && run.growth == wanted.growth && run.steps < wanted.steps;
    if (continues) continue;
    if (missing.other.empty()) {
      ASSIGN_OR_RETURN(missing.difference, DifferenceText(run, wanted));
    }
    missing.other.push_back(cell.name);
  }
  return missing;
}

}  // namespace

bool IsRepeatedBy(const storage::ExperimentRecord& experiment, const v1::ExperimentSpec& spec) {
  return experiment.state != storage::ExperimentState::kCancelled &&
         experiment.counts.failed == 0 && experiment.counts.cancelled == 0 &&
         experiment.analyses.failed == 0 && experiment.analyses.cancelled == 0 &&
         experiment.analyses.failure.empty() && HasSpec(experiment, spec);
}

absl::StatusOr<std::string> FindIdentical(const lookup::View& view, const std::string& private_to,
                                          const Plan& plan) {
  const v1::ExperimentSpec& spec = plan.resolution.spec;
  ASSIGN_OR_RETURN(const auto named,
                   view.store->ExperimentsNamed(view.viewer, spec.name(), kComparedExperiments));
  for (const auto& [id, archived] : named) {
    const auto record = view.store->GetExperiment(id);
    if (absl::IsNotFound(record.status())) continue;  // deleted meanwhile
    if (!record.ok()) return record.status();
    if (record->owner != view.viewer.user || record->private_to != private_to ||
        !IsRepeatedBy(*record, spec)) {
      continue;
    }
    ASSIGN_OR_RETURN(const auto cells, view.store->ListCells(id, 0, kAllCells));
    if (HasCells(cells, plan)) return id;
  }
  return "";
}

absl::StatusOr<storage::ExperimentRecord> CheckExtension(const lookup::View& view,
                                                         const std::string& private_to,
                                                         const std::string& name, const Plan& plan,
                                                         std::vector<spec::Problem>* problems) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindWholeExperiment(view, name, "extends"));
  ASSIGN_OR_RETURN(const auto stored, results::LoadExperiment(view.store, id));
  const storage::ExperimentRecord& record = stored.record;
  if (!view.viewer.sees_all && record.owner != view.viewer.user) {
    return lookup::WithReason(absl::PermissionDeniedError(absl::StrCat(
                                  "experiments/", id, " is ", record.owner, "'s: only ",
                                  record.owner, " or an admin may extend it")),
                              "NOT_YOURS");
  }
  if (record.private_to != private_to) {
    AddProblem(name,
               absl::StrCat(id, " is ", record.private_to.empty() ? "public" : "private",
                            ", and they share no runs"),
               "a private experiment for a private one, a public for a public", problems);
    return record;
  }
  if (plan.runs.empty()) return record;  // the spec has problems of its own
  ASSIGN_OR_RETURN(const auto successor, view.store->ExtensionOf(id));
  if (!successor.empty()) {
    AddProblem(name, absl::StrCat(id, " is extended by ", successor), successor, problems);
    return record;
  }
  const size_t known = problems->size();
  CheckDeclared(name, stored.spec, plan.resolution.spec, problems);
  if (problems->size() > known) return record;
  ASSIGN_OR_RETURN(const auto missing, FindMissing(view.store, id, plan));
  if (!missing.absent.empty()) {
    AddProblem(name,
               absl::StrCat(report::Counted(missing.absent.size(), "cell"), " of ", id,
                            " would be lost: ", report::Enumerated(missing.absent, kNamedCells)),
               "every cell of it, by labels and seed: the old seeds and settings with the new ones",
               problems);
  }
  if (!missing.other.empty()) {
    AddProblem(
        name,
        absl::StrCat(report::Counted(missing.other.size(), "cell"), " of ", id,
                     " would be another training: ", report::Enumerated(missing.other, kNamedCells),
                     " (", missing.difference, ")"),
        "the same fields, except that training.steps may grow where the schedule doesn't depend on "
        "it; --again makes an experiment with other fields",
        problems);
  }
  return record;
}

}  // namespace ablate::submit
