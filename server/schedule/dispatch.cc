// Grants queued runs to the workers with the least work.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "server/config/fields.h"
#include "server/schedule/scheduler.h"

namespace ablate::schedule {
namespace {

constexpr uint32_t kMaxRunsPerLane = 32;
constexpr uint32_t kPage = 16;
constexpr size_t kManyLeases = 5'000;
constexpr absl::Duration kSharesAge = absl::Milliseconds(500);
constexpr size_t kMaxStepTimes = 1000;
constexpr absl::Duration kStepTimeAge = absl::Seconds(10);

}  // namespace

void Scheduler::Dispatch() {
  if (granting_) {
    dispatch_again_ = true;
    return;
  }
  dispatch_again_ = false;
  std::vector<storage::NewLease> leases;
  for (const char* device_kind : {"cpu", "cuda"}) AssignKind(device_kind, &leases);
  if (!leases.empty()) Grant(std::move(leases));
}

Scheduler::Takers Scheduler::TakersOf(absl::string_view device_kind) {
  Takers takers;
  for (auto& [name, worker] : workers_) {
    if (worker.device_kind != device_kind || !TakesNewRuns(worker)) continue;
    // Adding it up for each run would dominate the cost of a dispatch.
    worker.dispatched_at = worker.load();
    takers[name] = &worker;
  }
  return takers;
}

void Scheduler::AssignKind(absl::string_view device_kind, std::vector<storage::NewLease>* leases) {
  Takers takers = TakersOf(device_kind);
  uint32_t places = 0;
  for (const auto& [name, worker] : takers) places += worker->lanes * options_.runs_per_lane;
  // With many users each gives a part, and FairQueue says if that was too little.
  const uint32_t page = std::max(kPage, places / static_cast<uint32_t>(queueing_users_) + kPage);
  while (!takers.empty()) {
    std::set<std::string> trainers;
    for (const auto& [name, worker] : takers) {
      for (const auto& [trainer, environment] : worker->trainers) trainers.insert(trainer);
    }
    absl::StatusOr<FairQueue> queue = WaitingFor(device_kind, trainers, page);
    if (!queue.ok()) return;
    queueing_users_ = std::max<size_t>(queue->users(), 1);
    const size_t asked = takers.size(), before = leases->size();
    Assign(&*queue, &takers, leases);
    const size_t assigned = leases->size() - before;
    const bool fewer = takers.size() < asked;
    if (assigned == 0 && fewer) continue;
    // Other workers may have places for runs after this page, which the queue shows once these have
    // left.
    const bool more = assigned > 0 && !takers.empty() && (queue->ran_out() || fewer);
    dispatch_again_ = dispatch_again_ || more;
    return;
  }
}

absl::StatusOr<FairQueue> Scheduler::WaitingFor(absl::string_view device_kind,
                                                const std::set<std::string>& trainers,
                                                uint32_t page) {
  ASSIGN_OR_RETURN(auto queue, store_->Queue(device_kind, trainers, page));
  // With one user and any number of lanes, shares don't matter.
  const bool alone =
      queue.empty() ||
      (queue.front().user == queue.back().user &&
       (options_.max_lanes == nullptr || !options_.max_lanes(queue.front().user).has_value()));
  if (alone) return FairQueue(std::move(queue), {}, nullptr, page);
  ASSIGN_OR_RETURN(const auto shares, Shares());
  return FairQueue(std::move(queue), shares, options_.max_lanes, page);
}

absl::StatusOr<storage::DeviceShares> Scheduler::Shares() {
  size_t leases = 0;
  for (const auto& [name, worker] : workers_) leases += worker.leases.size();
  const absl::Duration now = clock_->Now();
  if (leases >= kManyLeases && now - shares_at_ < kSharesAge) return shares_;
  ASSIGN_OR_RETURN(shares_, store_->GetShares());
  shares_at_ = now;
  return shares_;
}

// A run that has to wait makes every worker that could train it wait, even if shorter runs would
// fit in between; otherwise it would never get its turn.
void Scheduler::Assign(FairQueue* queue, Takers* takers, std::vector<storage::NewLease>* leases) {
  while (!takers->empty()) {
    const storage::QueuedRun* const next = queue->Next();
    if (next == nullptr) break;
    const storage::QueuedRun& run = *next;
    const auto taker = LeastLoaded(run, *takers);
    if (taker == takers->end()) {
      for (auto it = takers->begin(); it != takers->end();) {
        it = CanTrain(*it->second, run) ? takers->erase(it) : std::next(it);
      }
      continue;
    }
    const auto& [name, worker] = *taker;
    worker->granting += worker->LanesOf(run.lanes);
    const uint32_t steps = std::max(run.steps, 1u);  // those of programs are open
    const double micros = StepMicros(run.shape).value_or(kUnknownRunMicros / steps) * steps;
    queue->HandedOut(micros);
    storage::DeviceShare& share = shares_[run.user];
    share.expected += micros;
    share.training += run.lanes;
    leases->push_back({new_lease_id_(),
                       {name, worker->incarnation, worker->device, worker->build, run.trainer,
                        worker->trainers.at(run.trainer), worker->numerics_version},
                       run.run,
                       run.lanes});
  }
}

void Scheduler::Grant(std::vector<storage::NewLease> leases) {
  granting_ = true;
  auto done = OnThread<absl::StatusOr<storage::Grants>>(
      [this, leases](const absl::StatusOr<storage::Grants>& granted) {
        OnGranted(leases, granted);
      });
  store_->GrantAsync(std::move(leases), std::move(done));
}

void Scheduler::OnGranted(const std::vector<storage::NewLease>& leases,
                          const absl::StatusOr<storage::Grants>& granted) {
  for (auto& [name, worker] : workers_) worker.granting = 0;
  for (size_t i = 0; granted.ok() && i < leases.size(); ++i) {
    if ((*granted)[i].has_value()) {
      HandOut(leases[i], *(*granted)[i]);
    } else {
      // It left the queue, cancelled or because nobody can train it: its place is free.
      dispatch_again_ = true;
    }
  }
  granting_ = false;
  withdrawn_.clear();
  if (absl::IsResourceExhausted(granted.status())) no_room_at_ = clock_->Now();
  if (granted.ok() && dispatch_again_) Dispatch();
}

void Scheduler::HandOut(const storage::NewLease& made, const storage::GrantedRun& run) {
  if (withdrawn_.count(made.lease) > 0) return;
  WorkerState& worker = workers_[made.holder.worker];
  const bool there = worker.incarnation == made.holder.incarnation && TakesNewRuns(worker);
  worker.worked = worker.worked || there;
  if (there && worker.load() == 0) worker.progress_at = clock_->Now();
  HeldLease& lease = worker.leases[made.lease];
  lease.incarnation = made.holder.incarnation;
  lease.order = ++grants_;
  lease.run = made.run;
  lease.lanes = made.lanes;
  worker::v1::ToWorker message;
  message.mutable_grant()->set_lease(made.lease);
  message.mutable_grant()->set_credit_bytes(options_.credit_bytes);
  worker::v1::GrantedRun& granted = *message.mutable_grant()->mutable_run();
  if (!spec::ReadStoredRun(run.spec, granted.mutable_spec())) {
    End(made.holder.worker, made.lease,
        {storage::LeaseEnd::kDied, "its stored spec can't be read"});
    return;
  }
  if (!there) {
    End(made.holder.worker, made.lease,
        {storage::LeaseEnd::kReleased, "its worker left before it was handed out"});
    return;
  }
  granted.set_run(made.run);
  granted.set_dataset_blob(run.dataset_blob);
  granted.set_data_blob(run.data_blob);
  granted.set_initial_blob(run.initial_blob);
  granted.set_resume_blob(run.resume_blob);
  granted.set_resume_step(run.resume_step);
  granted.set_keep_state(run.keep_state);
  worker.granted_up_to = worker.load();
  SendTo(worker.session, message);
}

// Granting runs one by one, as others end, costs a queue read and a commit each. Short runs, which
// are granted in advance, are therefore granted when a worker has half of its limit left.
bool Scheduler::HasWork(const WorkerState& worker) const {
  return worker.load() + worker.granting >=
         std::max(worker.lanes * options_.runs_per_lane, worker.granted_up_to / 2);
}

bool Scheduler::HasTimeFor(const WorkerState& worker, const storage::QueuedRun& run) {
  constexpr double kSpread = 1.3;  // of runs of one shape
  constexpr absl::Duration kNotice = absl::Minutes(3);
  if (run.whole_seconds == 0 || worker.ends_at == absl::InfiniteDuration()) return true;
  absl::Duration takes = run.whole_seconds == storage::kUnknownSeconds
                             ? absl::ZeroDuration()
                             : absl::Seconds(run.whole_seconds);
  if (const auto micros = StepMicros(run.shape); micros.has_value()) {
    takes = absl::Microseconds(*micros * std::max(run.steps, 1u) / run.lanes * kSpread);
  }
  // Those that the worker has already come first, and it is told to leave before its end.
  const double turns =
      1 + static_cast<double>(worker.dispatched_at + worker.granting) / std::max(worker.lanes, 1u);
  return takes * turns <= worker.ends_at - clock_->Now() - kNotice;
}

bool Scheduler::CanTrain(const WorkerState& worker, const storage::QueuedRun& run) {
  if (worker.trainers.count(run.trainer) == 0 || !HasTimeFor(worker, run)) return false;
  if (worker.lanes >= run.lanes) return true;
  return std::none_of(workers_.begin(), workers_.end(), [&](const auto& named) {
    const WorkerState& other = named.second;
    return other.device_kind == worker.device_kind && !other.analysis &&
           other.lanes > worker.lanes && other.trainers.count(run.trainer) > 0;
  });
}

// Compares what waits for each lane.
Scheduler::Takers::const_iterator Scheduler::LeastLoaded(const storage::QueuedRun& run,
                                                         const Takers& takers) {
  auto best = takers.end();
  uint64_t best_load = 0;
  const uint64_t runs_per_lane = RunsPerLane(run);
  for (auto taker = takers.begin(); taker != takers.end(); ++taker) {
    const WorkerState& worker = *taker->second;
    const uint64_t load = uint64_t{worker.dispatched_at} + worker.granting;
    if (load >= worker.lanes * runs_per_lane || !CanTrain(worker, run)) continue;
    if (best != takers.end() && load * best->second->lanes >= best_load * worker.lanes) continue;
    best = taker;
    best_load = load;
  }
  return best;
}

bool Scheduler::TakesNewRuns(const WorkerState& worker) const {
  return !draining_ && worker.session != 0 && !worker.leaving && !worker.analysis &&
         (options_.numerics_version == 0 || worker.numerics_version == options_.numerics_version) &&
         worker.config_version >= options_.config_version;
}

uint32_t Scheduler::RunsPerLane(const storage::QueuedRun& run) {
  const std::optional<double> micros = StepMicros(run.shape);
  if (!micros.has_value()) return options_.runs_per_lane;
  const double work = std::max(*micros * std::max(run.steps, 1u) / run.lanes, 1.0);
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
