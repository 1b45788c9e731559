// Grants queued runs to the workers with the least to do.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "server/schedule/scheduler.h"
#include "server/spec/fields.h"

namespace ablate::schedule {
namespace {

constexpr uint32_t kMaxRunsPerLane = 32;
constexpr uint32_t kPage = 16;
constexpr size_t kMaxStepTimes = 1000;
constexpr absl::Duration kStepTimeAge = absl::Seconds(10);
constexpr double kUnknownRunMicros = 10e6;  // of a run whose shape nobody has measured

}  // namespace

// What can't be granted now is tried again at the next tick.
void Scheduler::Dispatch() {
  if (draining_) return;
  for (const char* device_kind : {"cpu", "cuda"}) {
    if (!DispatchKind(device_kind).ok()) return;
  }
}

absl::Status Scheduler::DispatchKind(absl::string_view device_kind) {
  Takers all;
  uint32_t lanes = 0;
  for (auto& [name, worker] : workers_) {
    if (worker.device_kind != device_kind || !TakesNewRuns(worker)) continue;
    all[name] = &worker;
    lanes += worker.lanes;
  }
  const uint32_t page = std::max(kPage, lanes * options_.runs_per_lane);
  Takers takers = all;
  while (!takers.empty()) {
    std::set<std::string> trainers;
    for (const auto& [name, worker] : takers) {
      for (const auto& [trainer, environment] : worker->trainers) trainers.insert(trainer);
    }
    absl::StatusOr<FairQueue> queue = WaitingFor(device_kind, trainers, page);
    if (!queue.ok()) return queue.status();
    const size_t asked = takers.size();
    const std::vector<storage::NewLease> leases = Assign(&*queue, &takers);
    const absl::StatusOr<size_t> granted = leases.empty() ? 0 : Grant(leases);
    if (!granted.ok()) return granted.status();
    if (*granted < leases.size()) {
      // Those that were not handed out have left the queue, and their places are free.
      takers = all;
    } else if (leases.size() < page && takers.size() == asked) {
      break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FairQueue> Scheduler::WaitingFor(absl::string_view device_kind,
                                                const std::set<std::string>& trainers,
                                                uint32_t page) {
  auto queue = store_->Queue(device_kind, trainers, page);
  if (!queue.ok()) return queue.status();
  // Of one user alone, with any number of lanes, the shares say nothing.
  const bool alone =
      queue->empty() ||
      (queue->front().user == queue->back().user &&
       (options_.max_lanes == nullptr || !options_.max_lanes(queue->front().user).has_value()));
  if (alone) return FairQueue(*std::move(queue), {}, nullptr);
  const auto shares = store_->GetShares();
  if (!shares.ok()) return shares.status();
  return FairQueue(*std::move(queue), *shares, options_.max_lanes);
}

// A run that has to wait makes all who could train it wait for it, whatever shorter ones they could
// have in between: or it would never have its turn.
std::vector<storage::NewLease> Scheduler::Assign(FairQueue* queue, Takers* takers) {
  std::vector<storage::NewLease> leases;
  std::map<std::string, uint64_t> assigned;
  while (!takers->empty()) {
    const storage::QueuedRun* const next = queue->Next();
    if (next == nullptr) break;
    const storage::QueuedRun& run = *next;
    const auto taker = LeastLoaded(run, *takers, assigned);
    if (taker == takers->end()) {
      for (auto it = takers->begin(); it != takers->end();) {
        it = it->second->trainers.count(run.trainer) > 0 ? takers->erase(it) : std::next(it);
      }
      continue;
    }
    const auto& [name, worker] = *taker;
    ++assigned[name];
    queue->HandedOut(StepMicros(run.shape).value_or(kUnknownRunMicros / std::max(run.steps, 1u)) *
                     run.steps);
    leases.push_back({new_lease_id_(),
                      {name, worker->incarnation, worker->device, worker->build, run.trainer,
                       worker->trainers.at(run.trainer), worker->numerics_version},
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
  worker.granted_up_to = worker.load();
  SendTo(worker.session, message);
}

// Runs that are granted one by one, as others end, take a look at the queue and a commit each:
// those that are granted ahead because they are short come by half of what a worker may have.
bool Scheduler::HasWork(const WorkerState& worker) const {
  return worker.load() >= std::max(worker.lanes * options_.runs_per_lane, worker.granted_up_to / 2);
}

// Compared by runs per lane.
Scheduler::Takers::const_iterator Scheduler::LeastLoaded(
    const storage::QueuedRun& run, const Takers& takers,
    const std::map<std::string, uint64_t>& assigned) {
  auto best = takers.end();
  uint64_t best_load = 0;
  for (auto taker = takers.begin(); taker != takers.end(); ++taker) {
    const WorkerState& worker = *taker->second;
    if (worker.trainers.count(run.trainer) == 0) continue;
    const auto ahead = assigned.find(taker->first);
    const uint64_t load = worker.load() + (ahead == assigned.end() ? 0 : ahead->second);
    if (load >= uint64_t{worker.lanes} * RunsPerLane(run)) continue;
    if (best != takers.end() && load * best->second->lanes >= best_load * worker.lanes) continue;
    best = taker;
    best_load = load;
  }
  return best;
}

bool Scheduler::TakesNewRuns(const WorkerState& worker) const {
  return worker.session != 0 && !worker.leaving && !worker.analysis &&
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
