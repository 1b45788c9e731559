#include "server/service/related.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/reflect/text.h"
#include "server/report/compare/wording.h"
#include "server/rpc/errors.h"

namespace ablate::service {
namespace {

constexpr uint32_t kComparedExperiments = 20;
constexpr uint32_t kAllCells = std::numeric_limits<uint32_t>::max();
constexpr size_t kNamedCells = 3;

bool HasSpec(const storage::ExperimentRecord& record, const v1::ExperimentSpec& spec) {
  v1::ExperimentSpec stored;
  if (!stored.ParseFromString(record.spec)) return false;
  stored.set_name(record.name);
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

// Cells of an extended experiment that the plan lacks, or would train otherwise.
struct Missing {
  std::vector<std::string> absent, other;
};

absl::StatusOr<Missing> FindMissing(storage::Store* store, const std::string& extended,
                                    const Plan& plan) {
  const auto cells = store->ListCells(extended, 0, kAllCells);
  if (!cells.ok()) return cells.status();
  using Key = std::pair<std::map<std::string, std::string>, uint32_t>;  // labels and seed
  std::map<Key, const storage::NewRun*> planned;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const spec::ResolvedCell& cell = plan.resolution.cells[i];
    planned[{{cell.labels.begin(), cell.labels.end()}, cell.seed}] =
        &plan.runs[plan.run_of_cell[i]];
  }
  Missing missing;
  for (const storage::CellRecord& cell : *cells) {
    const auto found = planned.find({{cell.labels.begin(), cell.labels.end()}, cell.seed});
    if (found == planned.end()) {
      missing.absent.push_back(cell.name);
      continue;
    }
    const storage::NewRun& wanted = *found->second;
    // A run's name is its fingerprint and, after a dot, its generation.
    if (cell.run.substr(0, cell.run.find('.')) == wanted.fingerprint) continue;
    const auto run = store->GetRun(cell.run);
    if (!run.ok()) return run.status();
    const bool continues =
        !run->growth.empty() && run->growth == wanted.growth && run->steps <= wanted.steps;
    if (!continues) missing.other.push_back(cell.name);
  }
  return missing;
}

std::string CountText(size_t cells) { return absl::StrCat(cells, cells == 1 ? " cell" : " cells"); }

void AddProblem(const std::string& value, const std::string& complaint, const std::string& allowed,
                std::vector<spec::Problem>* problems) {
  problems->push_back(reflect::MakeProblem("extends", value, complaint, allowed));
}

}  // namespace

absl::StatusOr<std::string> FindIdentical(const rpc::View& view, const std::string& private_to,
                                          const Plan& plan) {
  const v1::ExperimentSpec& spec = plan.resolution.spec;
  const auto named = view.store->ExperimentsNamed(view.viewer, spec.name(), kComparedExperiments);
  if (!named.ok()) return named.status();
  for (const auto& [id, archived] : *named) {
    const auto record = view.store->GetExperiment(id);
    if (absl::IsNotFound(record.status())) continue;  // deleted meanwhile
    if (!record.ok()) return record.status();
    const bool whole = record->state != storage::ExperimentState::kCancelled &&
                       record->counts.failed == 0 && record->counts.cancelled == 0;
    if (!whole || record->owner != view.viewer.user || record->private_to != private_to ||
        !HasSpec(*record, spec)) {
      continue;
    }
    const auto cells = view.store->ListCells(id, 0, kAllCells);
    if (!cells.ok()) return cells.status();
    if (HasCells(*cells, plan)) return id;
  }
  return "";
}

absl::StatusOr<storage::ExperimentRecord> CheckExtension(const rpc::View& view,
                                                         const std::string& private_to,
                                                         const std::string& name, const Plan& plan,
                                                         std::vector<spec::Problem>* problems) {
  const auto id = rpc::FindWholeExperiment(view, name, "extends");
  if (!id.ok()) return id.status();
  const auto record = view.store->GetExperiment(*id);
  if (!record.ok()) return record.status();
  if (!view.viewer.sees_all && record->owner != view.viewer.user) {
    return rpc::WithReason(absl::PermissionDeniedError(
                               absl::StrCat("experiments/", *id, " is ", record->owner, "'s: only ",
                                            record->owner, " or an admin may extend it")),
                           "NOT_YOURS");
  }
  if (record->private_to != private_to) {
    AddProblem(name,
               absl::StrCat(*id, " is ", record->private_to.empty() ? "public" : "private",
                            ", and they share no runs"),
               "a private experiment for a private one, a public for a public", problems);
    return record;
  }
  if (plan.runs.empty()) return record;  // the spec has problems of its own
  const auto missing = FindMissing(view.store, *id, plan);
  if (!missing.ok()) return missing.status();
  if (!missing->absent.empty()) {
    AddProblem(name,
               absl::StrCat(CountText(missing->absent.size()), " of ", *id,
                            " would be lost: ", report::Enumerated(missing->absent, kNamedCells)),
               "every cell of it, by labels and seed", problems);
  }
  if (!missing->other.empty()) {
    AddProblem(name,
               absl::StrCat(
                   CountText(missing->other.size()), " of ", *id,
                   " would be another training: ", report::Enumerated(missing->other, kNamedCells)),
               "the same fields for its cells, except that training.steps may grow where the "
               "schedule doesn't depend on it",
               problems);
  }
  return record;
}

}  // namespace ablate::service
