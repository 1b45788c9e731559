#include "server/service/create_answer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "server/lookup/names.h"
#include "server/service/convert.h"

namespace ablate::service {
namespace {

// Returns true if a row of so many bytes fits into the answer; otherwise notes that it has `added`
// of `all`.
bool Fits(size_t bytes, int added, size_t all, absl::string_view what, lookup::Room* room,
          v1::CreateExperimentResponse* response) {
  if (room->Take(bytes)) return true;
  response->add_notes(absl::StrCat("the answer has the first ", added, " of ", all, " ", what));
  return false;
}

template <class Row>
void AddRows(const std::vector<Row>& rows, absl::string_view what, lookup::Room* room,
             google::protobuf::RepeatedPtrField<Row>* field,
             v1::CreateExperimentResponse* response) {
  for (const Row& row : rows) {
    const size_t bytes = row.ByteSizeLong() + 8;
    if (!Fits(bytes, field->size(), rows.size(), what, room, response)) return;
    *field->Add() = row;
  }
}

// Returns false once a cell doesn't fit.
bool AddCell(v1::Cell&& cell, size_t all, absl::string_view what, lookup::Room* room,
             v1::CreateExperimentResponse* response) {
  const size_t bytes = cell.ByteSizeLong() + 8;
  if (!Fits(bytes, response->cells_size(), all, what, room, response)) return false;
  *response->add_cells() = std::move(cell);
  return true;
}

void AddNotes(const std::vector<std::string>& notes, lookup::Room* room,
              v1::CreateExperimentResponse* response) {
  for (const std::string& note : notes) {
    const size_t bytes = note.size() + 4;
    if (!Fits(bytes, response->notes_size(), notes.size(), "notes", room, response)) return;
    response->add_notes(note);
  }
}

std::vector<v1::TrainerUse> TrainersOf(const submit::Plan& plan) {
  using Use = std::pair<std::string, std::string>;  // trainer and reason
  // By run: if some cells ask for a trainer and others leave it open, the reason is the latter's.
  std::map<size_t, Use> use_of_run;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const spec::ResolvedCell& cell = plan.resolution.cells[i];
    Use& use = use_of_run[plan.run_of_cell[i]];
    use = std::max(use, {cell.trainer, cell.why_not_native});
  }
  std::map<Use, uint32_t> runs;
  for (const auto& [run, use] : use_of_run) ++runs[use];
  std::vector<v1::TrainerUse> uses;
  for (const auto& [key, trained] : runs) {
    v1::TrainerUse& use = uses.emplace_back();
    use.set_trainer(key.first);
    use.set_why_not_native(key.second);
    use.set_runs(trained);
  }
  return uses;
}

// Adds the cells of the plan.
void PreviewCells(const submit::Plan& plan, lookup::Room* room,
                  v1::CreateExperimentResponse* response) {
  storage::RunCounts counts;
  bool full = false;
  uint32_t reused = 0;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const size_t run = plan.run_of_cell[i];
    const spec::ResolvedCell& resolved = plan.resolution.cells[i];
    const bool is_reused = plan.reused[run];
    const storage::RunState state = is_reused ? plan.known[run].state : storage::RunState::kQueued;
    CountCell(state, &counts);
    reused += is_reused ? 1 : 0;
    if (full) continue;
    v1::Cell cell;
    cell.set_name(resolved.name);
    SetLabels(resolved.labels, cell.mutable_labels());
    cell.set_seed(resolved.seed);
    if (is_reused) cell.set_run(lookup::RunName(plan.known[run].run));
    SetOrigin(plan.runs[run].origin, plan.first_step[run], &cell);
    cell.set_state(ToProto(state));
    cell.set_reused(is_reused);
    full = !AddCell(std::move(cell), plan.run_of_cell.size(), "cells", room, response);
  }
  *response->mutable_experiment()->mutable_counts() = ToProto(counts);
  response->set_reused(reused);
}

// Adds the cells of an experiment while they fit.
absl::Status AddStoredCells(storage::Store* store, const std::string& id, size_t count,
                            lookup::Room* room, v1::CreateExperimentResponse* response) {
  return lookup::VisitCells(store, id, [&](const std::vector<storage::CellRecord>& page) {
    for (const storage::CellRecord& cell : page) {
      if (!AddCell(ToProto(cell), count, "cells; ListRuns has all", room, response)) return false;
    }
    return true;
  });
}

}  // namespace

void DescribePlan(const submit::Plan& plan, lookup::Room* room,
                  v1::CreateExperimentResponse* response) {
  AddNotes(plan.resolution.notes, room, response);
  AddRows(TrainersOf(plan), "trainers' uses", room, response->mutable_trainers(), response);
  AddRows(plan.resolution.parameters, "settings' parameters", room, response->mutable_parameters(),
          response);
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const storage::KnownRun& known = plan.known[plan.run_of_cell[i]];
    if (!known.run.empty() || known.same_trajectory.empty()) continue;
    const std::string& cell = plan.resolution.cells[i].name;
    if (room->Take(cell.size() + 4)) response->add_differs_only_in_evaluation(cell);
  }
  response->set_analyses(static_cast<uint32_t>(plan.analyses));
  v1::Estimate* estimate = response->mutable_estimate();
  *estimate->mutable_device_time() = ToDuration(plan.cost.device_time);
  *estimate->mutable_wall_time() = ToDuration(plan.cost.wall_time);
  estimate->set_bytes(plan.cost.bytes);
  estimate->set_measured(plan.cost.measured);
}

v1::CreateExperimentResponse Preview(const std::string& owner, bool is_private,
                                     submit::Plan&& plan) {
  v1::CreateExperimentResponse response;
  response.mutable_experiment()->set_owner(owner);
  response.mutable_experiment()->set_private_(is_private);
  *response.mutable_experiment()->mutable_spec() = std::move(plan.resolution.spec);
  lookup::Room room(lookup::kPageBytes);
  room.Take(response.ByteSizeLong());
  std::vector<v1::Problem> problems;
  for (const spec::Problem& problem : plan.resolution.problems) {
    problems.push_back(ToProto(problem));
  }
  if (!plan.no_room.empty()) problems.emplace_back().set_message(plan.no_room);
  AddRows(problems, "problems", &room, response.mutable_problems(), &response);
  if (plan.runs.empty()) return response;
  DescribePlan(plan, &room, &response);
  PreviewCells(plan, &room, &response);
  return response;
}

absl::Status AddStoredParameters(storage::Store* store, const std::string& id, lookup::Room* room,
                                 v1::CreateExperimentResponse* response) {
  std::vector<v1::SettingParameters> settings;
  std::vector<std::pair<std::string, std::string>> labels;
  const auto add = [&](const std::vector<storage::CellRecord>& page) -> absl::StatusOr<bool> {
    for (const storage::CellRecord& cell : page) {
      if (!settings.empty() && cell.labels == labels) continue;
      labels = cell.labels;
      ASSIGN_OR_RETURN(const auto run, store->GetRun(cell.run));
      SetLabels(labels, settings.emplace_back().mutable_labels());
      settings.back().set_parameters(run.parameters);
    }
    return true;
  };
  RETURN_IF_ERROR(lookup::VisitCells(store, id, add));
  AddRows(settings, "settings' parameters", room, response->mutable_parameters(), response);
  return absl::OkStatus();
}

absl::Status AddStored(const Backend& backend, const std::string& id, size_t cells, uint32_t reused,
                       lookup::Room* room, v1::CreateExperimentResponse* response) {
  response->set_reused(reused);
  ASSIGN_OR_RETURN(const storage::ExperimentRecord record, backend.store->GetExperiment(id));
  *response->mutable_experiment() = ToProto(record, backend.store->stalled());
  return AddStoredCells(backend.store, id, cells, room, response);
}

}  // namespace ablate::service
