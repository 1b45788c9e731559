#include <future>
#include <memory>
#include <string>
#include <utility>

#include "ablate/v1/experiment.pb.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/results/diff.h"
#include "server/rpc/call.h"
#include "server/rpc/identity.h"
#include "server/rpc/live_streams.h"
#include "server/service/annotations.h"
#include "server/service/changes.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr uint32_t kExperimentsAtOnce = 50;
constexpr char kExperimentList[] = "experiments";

absl::Status GetExperiment(const Backend& backend, const lookup::View& view,
                           const v1::GetExperimentRequest& request, v1::Experiment* response) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindExperiment(view, request.name(), "name"));
  ASSIGN_OR_RETURN(const auto record, backend.store->GetExperiment(id));
  *response = ToProto(record, backend.store->stalled());
  return absl::OkStatus();
}

// Returns the error for the missing experiment that a list was to continue after.
absl::Status Gone(const v1::ListExperimentsRequest& request, bool is_the_tokens) {
  if (is_the_tokens) return lookup::NotAPageToken(request.page_token());
  return absl::AbortedError("an experiment was deleted during the listing. Start the list again");
}

absl::Status ListExperiments(const Backend& backend, const lookup::View& view,
                             const v1::ListExperimentsRequest& request,
                             v1::ListExperimentsResponse* response) {
  const storage::ExperimentFilter filter{std::string(absl::StripPrefix(request.owner(), "users/")),
                                         request.tag(), request.archived()};
  std::string list = kExperimentList;
  if (!filter.owner.empty()) absl::StrAppend(&list, " of ", filter.owner);
  if (!filter.tag.empty()) absl::StrAppend(&list, " with ", filter.tag);
  if (filter.archived) absl::StrAppend(&list, " and archived ones");
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, list, lookup::kDefaultPage));
  lookup::Room room(lookup::kPageBytes);
  std::string last = page.position;
  const std::string stalled = backend.store->stalled();
  while (true) {
    // A few at a time: each may be as large as a page.
    const auto records = view.store->ListExperiments(view.viewer, filter, last, kExperimentsAtOnce);
    // Only the token's experiment can be missing.
    if (absl::IsNotFound(records.status())) return Gone(request, page.position == last);
    if (!records.ok()) return records.status();
    for (const storage::ExperimentRecord& record : *records) {
      const bool full = static_cast<uint32_t>(response->experiments_size()) == page.size;
      v1::Experiment experiment = ToProto(record, stalled);
      if (full || !room.Take(experiment.ByteSizeLong() + 8)) {
        response->set_next_page_token(lookup::PageToken(list, last));
        return absl::OkStatus();
      }
      *response->add_experiments() = std::move(experiment);
      last = record.id;
    }
    if (records->size() < kExperimentsAtOnce) return absl::OkStatus();
  }
}

absl::Status DiffExperiments(const lookup::View& view, const v1::DiffExperimentsRequest& request,
                             const lookup::Cancelled& cancelled,
                             v1::DiffExperimentsResponse* response) {
  ASSIGN_OR_RETURN(*response, results::Diff(view, request, cancelled));
  return absl::OkStatus();
}

// Returns the experiment with this name if the caller may change it, and sets `resource` to its
// full name.
absl::StatusOr<std::string> FindToChange(const Backend& backend, const storage::Caller& caller,
                                         const std::string& name, std::string* resource) {
  auto id = lookup::FindWholeExperiment(backend.ViewOf(caller), name, "name");
  if (!id.ok()) return id.status();
  *resource = lookup::ExperimentName(*id);
  ASSIGN_OR_RETURN(const auto record, backend.store->GetExperiment(*id));
  RETURN_IF_ERROR(rpc::CheckMayChange(caller, record.owner, *resource));
  return id;
}

absl::Status UpdateExperiment(Backend& backend, const storage::Caller& caller,
                              const v1::UpdateExperimentRequest& request, std::string* resource,
                              v1::Experiment* response) {
  ASSIGN_OR_RETURN(const auto id, FindToChange(backend, caller, request.name(), resource));
  ASSIGN_OR_RETURN(const auto update, ReadUpdate(request));
  RETURN_IF_ERROR(backend.store->UpdateExperiment(id, update));
  if (update.paused == false) {
    backend.scheduler->Post([](schedule::Scheduler& scheduler) { scheduler.Dispatch(); });
  }
  ASSIGN_OR_RETURN(const auto record, backend.store->GetExperiment(id));
  *response = ToProto(record, backend.store->stalled());
  return absl::OkStatus();
}

// Waits briefly until workers have saved the experiment's runs, so that runs which are queued again
// continue from their present step. Doesn't wait if too many calls do, because they occupy threads.
absl::Status SaveRuns(Backend& backend, const std::string& experiment) {
  auto runs = backend.store->LeasedOnlyBy(experiment);
  if (!runs.ok() || runs->empty()) return runs.status();
  const rpc::LiveCall waits(&backend.saves);
  if (!waits.accepted().ok()) return absl::OkStatus();
  const auto saved = std::make_shared<std::promise<void>>();
  const std::future<void> done = saved->get_future();
  backend.scheduler->Post([runs = *std::move(runs), saved](schedule::Scheduler& scheduler) {
    scheduler.Save(runs, [saved] { saved->set_value(); });
  });
  // The scheduler may be stopping.
  done.wait_for(absl::ToChronoMilliseconds(backend.scheduler->save_timeout()));
  return absl::OkStatus();
}

absl::Status CancelExperiment(Backend& backend, const storage::Caller& caller,
                              const v1::CancelExperimentRequest& request, std::string* resource,
                              v1::Experiment* response) {
  ASSIGN_OR_RETURN(const auto id, FindToChange(backend, caller, request.name(), resource));
  RETURN_IF_ERROR(SaveRuns(backend, id));
  ASSIGN_OR_RETURN(auto cancelled, backend.store->CancelExperiment(id));
  for (const std::string& analysis : cancelled.analyses) backend.analyses->Cancel(analysis);
  if (!cancelled.withdrawals.empty()) {
    backend.scheduler->Post([withdrawn = std::move(cancelled.withdrawals)](
                                schedule::Scheduler& scheduler) { scheduler.Withdraw(withdrawn); });
  }
  ASSIGN_OR_RETURN(const auto record, backend.store->GetExperiment(id));
  *response = ToProto(record, backend.store->stalled());
  return absl::OkStatus();
}

void FillNames(const std::vector<std::string>& ids,
               google::protobuf::RepeatedPtrField<std::string>* names) {
  for (const std::string& id : ids) names->Add(lookup::ExperimentName(id));
}

v1::DeleteExperimentResponse ResponseOf(const storage::Deletion& deletion) {
  v1::DeleteExperimentResponse response;
  response.set_runs(deletion.runs);
  response.set_analyses(deletion.analyses);
  *response.mutable_device_time() = ToDuration(absl::Microseconds(deletion.device_time));
  response.set_bytes(deletion.bytes);
  response.set_shared_runs(deletion.shared_runs);
  FillNames(deletion.shared_with, response.mutable_shared_with());
  FillNames(deletion.checkpoint_of, response.mutable_checkpoint_of());
  return response;
}

absl::Status DeleteExperiment(Backend& backend, const storage::Caller& caller,
                              const v1::DeleteExperimentRequest& request, std::string* resource,
                              v1::DeleteExperimentResponse* response) {
  ASSIGN_OR_RETURN(const auto id, FindToChange(backend, caller, request.name(), resource));
  const auto deletion = backend.store->PlanDeletion(backend.ViewOf(caller).viewer, id);
  absl::Status status = deletion.status();
  if (status.ok() && !request.validate_only()) status = backend.store->DeleteExperiment(id);
  if (absl::IsFailedPrecondition(status)) return lookup::WithReason(status, "EXPERIMENT_ACTIVE");
  if (status.ok()) *response = ResponseOf(*deletion);
  return status;
}

grpc::ServerUnaryReactor* AnswerDelete(Backend* backend, grpc::CallbackServerContext* context,
                                       const v1::DeleteExperimentRequest* request,
                                       v1::DeleteExperimentResponse* response) {
  if (request->validate_only()) {
    return rpc::Answer(backend->pool, context, [backend, context, request, response] {
      ASSIGN_OR_RETURN(const auto caller, backend->FindCaller(*context));
      std::string resource;
      return DeleteExperiment(*backend, caller, *request, &resource, response);
    });
  }
  return backend->AnswerChange(
      context, "Experiments.DeleteExperiment", [=](const storage::Caller& caller, auto* resource) {
        return DeleteExperiment(*backend, caller, *request, resource, response);
      });
}

}  // namespace

std::unique_ptr<grpc::Service> MakeExperimentsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Experiments", backend);
  // A spec stays bytes until its size is known (create.cc).
  methods->BeginBytes("CreateExperiment", AnswerCreate);
  methods->Upload(StartImport);
  methods->Answer(GetExperiment);
  methods->Answer(ListExperiments);
  methods->Compare(DiffExperiments);
  methods->Change(UpdateExperiment);
  methods->Change(CancelExperiment);
  methods->Begin(AnswerDelete);
  methods->Stream(StartWatch);
  return methods;
}

}  // namespace ablate::service
