// Grants queued runs to the workers with the least to do.
#include <algorithm>
#include <cmath>
#include <utility>

#include "server/schedule/scheduler.h"
#include "server/spec/fields.h"

namespace ablate::schedule {
namespace {

constexpr uint32_t kMaxRunsPerLane = 32;
constexpr uint32_t kPage = 16;
constexpr size_t kMaxStepTimes = 1000;
constexpr absl::Duration kStepTimeAge = absl::Seconds(10);

}  // namespace

// What can't be granted now is tried again at the next tick.
void Scheduler::Dispatch() {
  if (draining_) return;
  for (const char* device_kind : {"cpu", "cuda"}) {
    if (!DispatchKind(device_kind).ok()) return;
  }
}

absl::Status Scheduler::DispatchKind(absl::string_view device_kind) {
  uint32_t lanes = 0;
  for (const auto& [name, worker] : workers_) {
    if (worker.device_kind == device_kind && TakesNewRuns(worker)) lanes += worker.lanes;
  }
  if (lanes == 0) return absl::OkStatus();
  const uint32_t page = std::max(kPage, lanes * options_.runs_per_lane);
  bool more = true;
  while (more) {
    absl::StatusOr<std::vector<storage::QueuedRun>> queue = store_->Queue(device_kind, page);
    if (!queue.ok()) return queue.status();
    const std::vector<storage::NewLease> leases = Assign(*queue);
    if (leases.empty()) return absl::OkStatus();
    const absl::StatusOr<size_t> granted = Grant(leases);
    if (!granted.ok()) return granted.status();
    // Those that were not handed out have left the queue, and their places are free.
    more = leases.size() == page || *granted < leases.size();
  }
  return absl::OkStatus();
}

std::vector<storage::NewLease> Scheduler::Assign(const std::vector<storage::QueuedRun>& queue) {
  std::vector<storage::NewLease> leases;
  std::map<std::string, uint64_t> assigned;
  for (const storage::QueuedRun& run : queue) {
    std::string name;
    const WorkerState* worker = LeastLoaded(run, assigned, &name);
    if (worker == nullptr) break;
    ++assigned[name];
    leases.push_back({new_lease_id_(),
                      {name, worker->incarnation, worker->device, worker->build, worker->trainer,
                       worker->environment, worker->numerics_version},
                      {run.run}});
  }
  return leases;
}

absl::StatusOr<size_t> Scheduler::Grant(const std::vector<storage::NewLease>& leases) {
  absl::StatusOr<std::vector<std::vector<storage::GrantedRun>>> granted = store_->Grant(leases);
  if (!granted.ok()) {
    if (absl::IsResourceExhausted(granted.status())) no_room_at_ = clock_->Now();
    return granted.status();
  }
  size_t handed_out = 0;
  for (size_t i = 0; i < leases.size(); ++i) {
    if ((*granted)[i].empty()) continue;  // it left the queue: cancelled, or nobody can train it
    HandOut(leases[i], std::move((*granted)[i]));
    ++handed_out;
  }
  return handed_out;
}

void Scheduler::HandOut(const storage::NewLease& made, std::vector<storage::GrantedRun> runs) {
  WorkerState& worker = workers_[made.holder.worker];
  if (worker.load() == 0) worker.progress_at = clock_->Now();
  HeldLease& lease = worker.leases[made.lease];
  lease.incarnation = worker.incarnation;
  lease.order = ++grants_;
  worker::v1::ToWorker message;
  message.mutable_grant()->set_lease(made.lease);
  message.mutable_grant()->set_credit_bytes(options_.credit_bytes);
  for (storage::GrantedRun& one : runs) {
    lease.runs[one.run];
    worker::v1::GrantedRun& entry = *message.mutable_grant()->add_runs();
    if (!spec::ReadStoredRun(one.spec, entry.mutable_spec())) {
      End(&worker, made.lease,
          {storage::LeaseEnd::kDied, {one.run}, "its stored spec can't be read"});
      return;
    }
    entry.set_run(std::move(one.run));
    entry.set_dataset_blob(std::move(one.dataset_blob));
    entry.set_resume_blob(std::move(one.resume_blob));
    entry.set_resume_step(one.resume_step);
    entry.set_keep_state(one.keep_state);
  }
  SendTo(worker.session, message);
}

// Compared by runs per lane.
WorkerState* Scheduler::LeastLoaded(const storage::QueuedRun& run,
                                    const std::map<std::string, uint64_t>& assigned,
                                    std::string* name) {
  WorkerState* best = nullptr;
  uint64_t best_load = 0;
  for (auto& [candidate, worker] : workers_) {
    if (worker.device_kind != run.device_kind || !TakesNewRuns(worker)) continue;
    const auto ahead = assigned.find(candidate);
    const uint64_t load = worker.load() + (ahead == assigned.end() ? 0 : ahead->second);
    if (load >= uint64_t{worker.lanes} * RunsPerLane(run)) continue;
    if (best != nullptr && load * best->lanes >= best_load * worker.lanes) continue;
    best = &worker;
    best_load = load;
    *name = candidate;
  }
  return best;
}

bool Scheduler::TakesNewRuns(const WorkerState& worker) const {
  return worker.session != 0 && !worker.leaving && !worker.analysis &&
         (options_.trainer.empty() || worker.trainer == options_.trainer) &&
         (options_.numerics_version == 0 || worker.numerics_version == options_.numerics_version) &&
         worker.config_version >= options_.config_version;
}

uint32_t Scheduler::RunsPerLane(const storage::QueuedRun& run) {
  const std::optional<double> micros = StepMicros(run.shape);
  if (!micros.has_value()) return options_.runs_per_lane;
  const double work = std::max(*micros * run.steps, 1.0);
  const double runs = std::ceil(absl::ToDoubleMicroseconds(options_.work_per_lane) / work);
  return std::max(options_.runs_per_lane,
                  static_cast<uint32_t>(std::min<double>(runs, kMaxRunsPerLane)));
}

std::optional<double> Scheduler::StepMicros(const std::string& shape) {
  const absl::Duration now = clock_->Now();
  const auto known = step_times_.find(shape);
  if (known != step_times_.end() && now < known->second.until) return known->second.micros;
  if (step_times_.size() >= kMaxStepTimes) step_times_.clear();
  const absl::StatusOr<std::optional<double>> measured = store_->MeasuredStepTime(shape);
  StepTime& entry = step_times_[shape];
  entry.micros = measured.ok() ? *measured : std::nullopt;
  entry.until = now + kStepTimeAge;
  return entry.micros;
}

}  // namespace ablate::schedule
