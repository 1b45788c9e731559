// ListQueue.
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/queue.pb.h"
#include "base/status_macros.h"
#include "server/lookup/names.h"
#include "server/schedule/queue_outlook.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr int kMaxListed = 1'000;

absl::StatusOr<schedule::QueueFacts> ReadFacts(const Backend& backend) {
  schedule::QueueFacts facts;
  ASSIGN_OR_RETURN(facts.groups, backend.store->QueuedGroups());
  ASSIGN_OR_RETURN(facts.shares, backend.store->GetShares());
  facts.stalled = backend.store->stalled();
  for (const storage::QueuedGroup& group : facts.groups) {
    if (facts.step_micros.count(group.shape) > 0) continue;
    ASSIGN_OR_RETURN(const auto micros, backend.store->MeasuredStepTime(group.shape));
    if (micros.has_value()) facts.step_micros[group.shape] = *micros;
  }
  backend.scheduler->Run([&facts](schedule::Scheduler& scheduler) {
    facts.workers = scheduler.Workers();
    facts.pilots = scheduler.pilots().Pending();
    facts.max_lanes = scheduler.max_lanes();
  });
  return facts;
}

v1::QueuedExperiment QueueRow(const lookup::View& view,
                              const schedule::ExperimentOutlook& outlook) {
  const storage::QueuedGroup& group = *outlook.group;
  v1::QueuedExperiment row;
  if (storage::Sees(view.viewer, group.private_to)) {
    row.set_experiment(lookup::ExperimentName(group.experiment));
    row.set_title(group.title);
  }
  row.set_owner(group.owner);
  row.set_priority(ToPriority(group.priority));
  row.set_paused(group.paused);
  row.set_queued(outlook.queued);
  row.set_running(group.running);
  row.set_waits(outlook.waits);
  if (outlook.start.has_value()) {
    *row.mutable_soonest() = ToDuration(outlook.start->soonest);
    *row.mutable_latest() = ToDuration(outlook.start->latest);
  }
  return row;
}

absl::Status ListQueue(const Backend& backend, const lookup::View& view,
                       const v1::ListQueueRequest&, v1::ListQueueResponse* response) {
  ASSIGN_OR_RETURN(const auto facts, ReadFacts(backend));
  for (const schedule::ExperimentOutlook& outlook : schedule::LookAhead(facts)) {
    if (response->experiments_size() < kMaxListed) {
      *response->add_experiments() = QueueRow(view, outlook);
    } else {
      response->set_left_out(response->left_out() + 1);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<grpc::Service> MakeQueueService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Queue", backend);
  methods->Answer(ListQueue);
  return methods;
}

}  // namespace ablate::service
