// CreateExperiment: from a request to queued runs, or to everything that is wrong with it.
#include "server/service/create.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/reflect/text.h"
#include "server/service/convert.h"
#include "server/service/errors.h"
#include "server/service/names.h"
#include "server/service/page.h"
#include "server/service/plan.h"
#include "server/service/text.h"
#include "storage/sha256.h"

namespace ablate::service {
namespace {

// The request's own fields; the spec's problems are Resolve's.
std::vector<spec::Problem> CheckRequest(const v1::CreateExperimentRequest& request) {
  std::vector<spec::Problem> problems;
  const std::string& id = request.request_id();
  const bool may_be_absent = request.validate_only() && id.empty();
  if (!may_be_absent && !IsPrintable(id, kMostRequestIdCharacters)) {
    problems.push_back(reflect::MakeProblem(
        "request_id", reflect::ShortText(id),
        id.empty() ? "it is missing" : absl::StrCat(reflect::Quoted(id), " can't be one"),
        absl::StrCat("1 to ", kMostRequestIdCharacters,
                     " printable characters, new for each submission")));
  }
  if (!request.has_spec()) {
    problems.push_back(reflect::MakeProblem("spec", "", "it is missing", "an experiment"));
  }
  return problems;
}

// Equal for requests that mean the same submission.
std::string RequestHash(v1::CreateExperimentRequest request) {
  request.clear_request_id();
  request.clear_validate_only();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return storage::Sha256Hex(bytes);
}

int PriorityOf(const v1::Limits& limits) {
  return limits.has_priority() ? limits.priority() - v1::Priority::interactive : 1;
}

storage::NewExperiment ToRecord(const Backend& backend, const v1::CreateExperimentRequest& request,
                                Plan&& plan) {
  storage::NewExperiment record;
  record.name = plan.resolution.spec.name();
  record.owner = backend.owner;
  record.request_id = request.request_id();
  record.request_hash = RequestHash(request);
  record.spec = plan.resolution.spec.SerializeAsString();
  record.priority = PriorityOf(plan.resolution.spec.limits());
  record.fresh = request.fresh();
  for (const spec::ResolvedCell& cell : plan.resolution.cells) {
    record.cells.push_back({cell.name, cell.labels, cell.seed, cell.fingerprint});
  }
  record.runs = std::move(plan.runs);
  return record;
}

// Adds `rows` while they fit into the answer; notes what was left out.
template <class Row>
void AddRows(const std::vector<Row>& rows, absl::string_view what, Room* room,
             google::protobuf::RepeatedPtrField<Row>* field,
             v1::CreateExperimentResponse* response) {
  for (const Row& row : rows) {
    if (!room->Take(row.ByteSizeLong() + 8)) {
      response->add_notes(
          absl::StrCat("the answer has the first ", field->size(), " of ", rows.size(), " ", what));
      return;
    }
    *field->Add() = row;
  }
}

void DescribePlan(const Plan& plan, v1::CreateExperimentResponse* response) {
  for (const std::string& note : plan.resolution.notes) response->add_notes(note);
  Room room(kPageBytes / 4);
  AddRows(plan.resolution.parameters, "settings' parameters", &room, response->mutable_parameters(),
          response);
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const storage::KnownRun& known = plan.known[plan.run_of_cell[i]];
    if (!known.run.empty() || known.same_trajectory.empty()) continue;
    const std::string& cell = plan.resolution.cells[i].name;
    if (room.Take(cell.size())) response->add_differs_only_in_evaluation(cell);
  }
  v1::Estimate* estimate = response->mutable_estimate();
  const auto set = [](absl::Duration from, google::protobuf::Duration* to) {
    to->set_seconds(absl::IDivDuration(from, absl::Seconds(1), &from));
    to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(from)));
  };
  set(plan.cost.device_time, estimate->mutable_device_time());
  set(plan.cost.wall_time, estimate->mutable_wall_time());
  estimate->set_bytes(plan.cost.bytes);
  estimate->set_measured(plan.cost.measured);
}

// The cells as they would be.
void PreviewCells(const Plan& plan, v1::CreateExperimentResponse* response) {
  storage::RunCounts counts;
  std::vector<v1::Cell> cells;
  uint32_t reused = 0;
  for (size_t i = 0; i < plan.run_of_cell.size(); ++i) {
    const size_t run = plan.run_of_cell[i];
    const spec::ResolvedCell& resolved = plan.resolution.cells[i];
    const bool is_reused = plan.reused[run];
    const storage::RunState state = is_reused ? plan.known[run].state : storage::RunState::kQueued;
    CountCell(state, &counts);
    reused += is_reused ? 1 : 0;
    v1::Cell& cell = cells.emplace_back();
    cell.set_name(resolved.name);
    SetLabels(resolved.labels, cell.mutable_labels());
    cell.set_seed(resolved.seed);
    if (is_reused) cell.set_run(RunName(plan.known[run].run));
    cell.set_state(ToProto(state));
    cell.set_reused(is_reused);
  }
  *response->mutable_experiment()->mutable_counts() = ToProto(counts);
  response->set_reused(reused);
  Room room(kPageBytes / 2);
  AddRows(cells, "cells", &room, response->mutable_cells(), response);
}

// The answer to validate_only.
v1::CreateExperimentResponse Preview(const Backend& backend, const Plan& plan) {
  v1::CreateExperimentResponse response;
  response.mutable_experiment()->set_owner(backend.owner);
  *response.mutable_experiment()->mutable_spec() = plan.resolution.spec;
  std::vector<v1::Problem> problems;
  for (const spec::Problem& problem : plan.resolution.problems) {
    problems.push_back(ToProto(problem));
  }
  if (!plan.no_room.empty()) problems.emplace_back().set_message(plan.no_room);
  Room room(kPageBytes / 4);
  AddRows(problems, "problems", &room, response.mutable_problems(), &response);
  if (plan.runs.empty()) return response;
  DescribePlan(plan, &response);
  PreviewCells(plan, &response);
  return response;
}

// The experiment and its cells as they are stored.
absl::Status DescribeCreated(storage::Store* store, const std::string& id, size_t count,
                             v1::CreateExperimentResponse* response) {
  const absl::StatusOr<storage::ExperimentRecord> record = store->GetExperiment(id);
  if (!record.ok()) return record.status();
  *response->mutable_experiment() = ToProto(*record, store->stalled());
  Room room(kPageBytes / 2);
  std::vector<v1::Cell> cells;
  while (cells.size() < count) {
    const auto page = store->ListCells(id, static_cast<uint32_t>(cells.size()), kCellsAtOnce);
    if (!page.ok()) return page.status();
    if (page->empty()) break;
    for (const storage::CellRecord& cell : *page) cells.push_back(ToProto(cell));
  }
  AddRows(cells, "cells; ListRuns has all", &room, response->mutable_cells(), response);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    const Backend& backend, const v1::CreateExperimentRequest& request) {
  Plan plan;
  std::vector<spec::Problem> problems = CheckRequest(request);
  if (request.has_spec()) {
    absl::StatusOr<Plan> made = MakePlan(backend, request);
    if (!made.ok()) return made.status();
    plan = *std::move(made);
  }
  problems.insert(problems.end(), plan.resolution.problems.begin(), plan.resolution.problems.end());
  plan.resolution.problems = problems;
  if (request.validate_only()) return Preview(backend, plan);
  if (!problems.empty()) return InvalidFields(problems);
  if (!plan.no_room.empty()) return absl::ResourceExhaustedError(plan.no_room);

  v1::CreateExperimentResponse response;
  DescribePlan(plan, &response);
  const size_t cells = plan.resolution.cells.size();
  absl::StatusOr<storage::CreatedExperiment> created =
      backend.store->CreateExperiment(ToRecord(backend, request, std::move(plan)));
  if (absl::IsAlreadyExists(created.status())) {
    return WithReason(created.status(), "REQUEST_ID_USED");
  }
  if (!created.ok()) return created.status();
  backend.scheduler->Post([](schedule::Scheduler& scheduler) { scheduler.Dispatch(); });
  response.set_reused(created->reused);
  const absl::Status described = DescribeCreated(backend.store, created->id, cells, &response);
  if (!described.ok()) return described;
  return response;
}

}  // namespace ablate::service
