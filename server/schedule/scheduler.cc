#include "server/schedule/scheduler.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status_macros.h"

namespace ablate::schedule {
namespace {

// Adds the runs that lanes train, then those that they begin next, then those whose end has
// arrived, each in order of granting.
void AddRuns(const WorkerState& worker, absl::Duration now, WorkerInfo* info) {
  std::map<std::pair<int, uint64_t>, const HeldLease*> ordered;
  for (const auto& [id, lease] : worker.leases) {
    const int stage = lease.ended ? 2 : (lease.started ? 0 : 1);
    ordered.emplace(std::pair(stage, lease.order), &lease);
  }
  for (const auto& [place, lease] : ordered) {
    info->runs.push_back(lease->run);
    if (!info->attached || !lease->stepping()) continue;
    info->busy_lanes += worker.LanesOf(lease->lanes);
    info->training.push_back(
        {lease->run, lease->meter.steps_per_second(now), lease->meter.losses()});
  }
  // A run whose end is on its way may have left its lane.
  info->busy_lanes = std::min(info->busy_lanes, worker.lanes);
}

}  // namespace

SchedulerOptions WithSilence(absl::Duration silence) {
  SchedulerOptions options;
  for (absl::Duration* time :
       {&options.heartbeat, &options.absence, &options.start_grace, &options.attach_timeout}) {
    *time = *time / absl::FDivDuration(options.silence, silence);
  }
  options.silence = silence;
  // Includes a start, which loads LibTorch and warms the lanes.
  options.attach_timeout = std::max(options.attach_timeout, absl::Seconds(30));
  return options;
}

Scheduler::Scheduler(storage::LeaseStore* store, const Clock* clock, SchedulerOptions options,
                     std::function<std::string()> new_lease_id)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      new_lease_id_(std::move(new_lease_id)),
      post_([](const std::function<void()>& task) { task(); }),
      start_(clock->Now()),
      last_tick_(start_),
      analyses_(clock, options_.analyses) {
  ReceiveWithdrawals();
}

void Scheduler::SetPost(Post post) {
  post_ = std::move(post);
  ReceiveWithdrawals();
}

void Scheduler::ReceiveWithdrawals() {
  using Withdrawals = std::vector<storage::Withdrawal>;
  store_->OnWithdrawn(
      OnThread<Withdrawals>([this](const Withdrawals& withdrawals) { Withdraw(withdrawals); }));
}

absl::Status Scheduler::Start() {
  start_ = clock_->Now();
  last_tick_ = start_;
  ASSIGN_OR_RETURN(std::vector<storage::LeaseRecord> leases, store_->ListLeases());
  for (const storage::LeaseRecord& record : leases) {
    WorkerState& worker = workers_[record.holder.worker];
    worker.incarnation = record.holder.incarnation;
    worker.device = record.holder.device;
    worker.build = record.holder.build;
    worker.detached_at = start_;
    HeldLease& lease = worker.leases[record.lease];
    lease.incarnation = record.holder.incarnation;
    lease.order = ++grants_;
    lease.run = record.run;
    // The first event of a lease shows that a lane has begun its run.
    lease.started = record.acked > 0;
  }
  return absl::OkStatus();
}

std::vector<WorkerInfo> Scheduler::Workers() const {
  std::vector<WorkerInfo> infos;
  infos.reserve(workers_.size());
  for (const auto& [name, worker] : workers_) {
    WorkerInfo& info = infos.emplace_back();
    info.name = name;
    info.device = worker.device;
    info.device_kind = worker.device_kind;
    info.build = worker.build;
    info.trainers = worker.trainers;
    info.no_programs = worker.no_programs;
    info.analysis = worker.analysis;
    info.lanes = worker.lanes;
    info.memory_bytes = worker.memory_bytes;
    info.attached = worker.session != 0;
    info.attach_time = worker.attach_time;
    info.end_time = worker.end_time;
    if (info.attached) info.device_use = worker.device_use;
    AddRuns(worker, clock_->Now(), &info);
    info.busy = !info.runs.empty() || analyses_.Busy(worker.session);
    const auto drained = drained_.find(name);
    if (drained != drained_.end()) info.unusable = drained->second.last_words;
  }
  for (const auto& [name, exit] : drained_) {
    if (workers_.count(name) > 0) continue;
    WorkerInfo& info = infos.emplace_back();
    info.name = name;
    info.analysis = exit.analysis;
    info.unusable = exit.last_words;
  }
  return infos;
}

}  // namespace ablate::schedule
