#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/worker.pb.h"
#include "base/status_macros.h"
#include "server/lookup/limits.h"
#include "server/lookup/page.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr absl::string_view kWorkerList = "workers";

// Hides the names of runs that are private to users other than the viewer.
absl::StatusOr<v1::Worker> ToRow(const lookup::View& view, schedule::WorkerInfo worker,
                                 const std::string& stalled) {
  ASSIGN_OR_RETURN(auto visible, view.store->VisibleRuns(view.viewer, worker.runs));
  const size_t hidden = worker.runs.size() - visible.size();
  worker.runs = std::move(visible);
  std::erase_if(worker.training, [&](const schedule::WorkerInfo::Training& training) {
    return std::find(worker.runs.begin(), worker.runs.end(), training.run) == worker.runs.end();
  });
  v1::Worker row = ToProto(worker, stalled);
  row.set_hidden_runs(static_cast<uint32_t>(hidden));
  return row;
}

absl::Status ListWorkers(const Backend& backend, const lookup::View& view,
                         const v1::ListWorkersRequest& request, v1::ListWorkersResponse* response) {
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, kWorkerList, lookup::kMaxPageSize));
  std::vector<schedule::WorkerInfo> workers;
  std::vector<schedule::PendingPilot> pilots;
  backend.scheduler->Run([&](schedule::Scheduler& scheduler) {
    workers = scheduler.Workers();
    if (page.position.empty()) pilots = scheduler.pilots().Pending();
  });
  for (const schedule::PendingPilot& pilot : pilots) {
    *response->add_pending_pilots() = ToProto(pilot);
  }
  const auto by_name = [](const schedule::WorkerInfo& a, const schedule::WorkerInfo& b) {
    return a.name < b.name;
  };
  std::sort(workers.begin(), workers.end(), by_name);
  const std::string stalled = backend.store->stalled();
  ASSIGN_OR_RETURN(const auto queued, backend.store->CountQueuedAnalyses());
  response->set_queued_analyses(queued);
  lookup::Room room(lookup::kPageBytes);
  std::string last;
  for (const schedule::WorkerInfo& worker : workers) {
    if (worker.name <= page.position) continue;
    ASSIGN_OR_RETURN(v1::Worker row, ToRow(view, worker, stalled));
    const bool full = static_cast<uint32_t>(response->workers_size()) == page.size;
    if (full || !room.Take(row.ByteSizeLong() + 8)) {
      response->set_next_page_token(lookup::PageToken(kWorkerList, last));
      break;
    }
    *response->add_workers() = std::move(row);
    last = worker.name;
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkersService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Workers", backend);
  methods->Answer(ListWorkers);
  return methods;
}

}  // namespace ablate::service
