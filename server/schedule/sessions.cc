// Streams: their first message, the leases that a worker claims, and their end.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/schedule/messages.h"
#include "server/schedule/scheduler.h"
#include "server/schedule/worker_names.h"

namespace ablate::schedule {

namespace v1 = worker::v1;

Scheduler::Session Scheduler::Open(std::shared_ptr<WorkerStream> stream) {
  const Session id = ++last_session_;
  Attachment& attachment = sessions_[id];
  attachment.stream = std::move(stream);
  attachment.heard = clock_->Now();
  return id;
}

void Scheduler::Receive(Session id, const v1::FromWorker& message) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second.heard = clock_->Now();
  if (found->second.worker.empty() != message.has_hello()) {
    Close(id, absl::InvalidArgumentError("hello: expected as the first message, and only there"));
    return;
  }
  switch (message.message_case()) {
    case v1::FromWorker::kHello:
      OnHello(id, message.hello());
      break;
    case v1::FromWorker::kEvent:
      OnEvent(id, message);
      break;
    case v1::FromWorker::kHeartbeat:
      OnHeartbeat(id, message.heartbeat());
      break;
    case v1::FromWorker::kAnalysisPart:
    case v1::FromWorker::kAnalysisResult:
    case v1::FromWorker::kAnalysisFailed:
    case v1::FromWorker::kAnalysisSaved:
      OnAnalysis(id, message);
      break;
    case v1::FromWorker::MESSAGE_NOT_SET:
      Close(id, absl::InvalidArgumentError("message: not set; expected one kind"));
      break;
  }
}

void Scheduler::DrainAll() {
  draining_ = true;
  v1::ToWorker drain;
  drain.mutable_drain();
  for (auto& [name, worker] : workers_) {
    if (IsElsewhere(name)) continue;
    worker.leaving = true;
    SendTo(worker.session, drain);
  }
}

void Scheduler::OnHello(Session id, const v1::Hello& hello) {
  if (absl::Status status = CheckHello(hello); !status.ok()) {
    Close(id, status);
    return;
  }
  if (absl::Status status = CheckKnownWorkers(hello.worker()); !status.ok()) {
    Close(id, status);
    return;
  }
  RegisterWorker(id, hello);
  v1::ToWorker message;
  message.mutable_welcome()->set_heartbeat_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat)));
  // Longer than `absence`: after a restart leases live this long, and a worker that trains in vain
  // for a while does no harm.
  message.mutable_welcome()->set_grace_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.start_grace)));
  SendTo(id, message);
  if (absl::Status status = SendDecisions(id, hello); !status.ok()) {
    Close(id, absl::UnavailableError(status.message()));
    return;
  }
  EndAbsentLeases(hello);
  if (hello.role() == v1::ANALYSIS && hello.config_version() >= options_.config_version) {
    analyses_.Attached(id, hello.worker(), hello.lanes(), hello.device_kind() == "cuda",
                       sessions_[id].stream);
  }
  if (workers_[hello.worker()].leaving) {
    // It may have missed the first drain message.
    message.mutable_drain();
    SendTo(id, message);
  }
  Dispatch();
}

absl::Status Scheduler::CheckKnownWorkers(const std::string& worker) const {
  if (workers_.count(worker) > 0) return absl::OkStatus();
  const absl::string_view user = UserOf(worker);
  const auto of_user = std::count_if(workers_.begin(), workers_.end(), [user](const auto& known) {
    return UserOf(known.first) == user;
  });
  if (workers_.size() < kMaxKnownWorkers && of_user < kMaxKnownWorkersOfUser)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("too many workers: ", workers_.size(), " in all and ", of_user,
                   " of this user within the last hour; expected at most ", kMaxKnownWorkers,
                   " and ", kMaxKnownWorkersOfUser, ". Retry later"));
}

void Scheduler::OnAnalysis(Session id, const v1::FromWorker& message) {
  if (workers_[sessions_[id].worker].analysis) {
    analyses_.Receive(id, message);
  } else {
    Close(id, absl::InvalidArgumentError("an analysis message from a worker that trains; expected "
                                         "one from a worker for analyses"));
  }
}

// The newest stream of a process wins, and a new process replaces the old one.
void Scheduler::RegisterWorker(Session id, const v1::Hello& hello) {
  drained_.erase(hello.worker());
  WorkerState& worker = workers_[hello.worker()];
  if (worker.session != 0) {
    // Otherwise that process would attach again and take its place back, forever.
    const bool same_process = worker.incarnation == hello.incarnation();
    Close(worker.session,
          same_process
              ? absl::AbortedError("a newer stream of this worker replaced it")
              : absl::AlreadyExistsError("another process attached under the worker's name"));
  }
  const bool same = worker.incarnation == hello.incarnation();
  if (!same) worker.leaving = false;
  if (!same) worker.worked = hello.held_size() > 0;
  worker.most_lanes = hello.lanes();
  // A worker that trains on a GPU may use fewer lanes than its most; its first heartbeat has them.
  const bool may_measure = hello.device_kind() == "cuda" && hello.role() == v1::TRAIN;
  const uint32_t known = same ? std::max(worker.lanes, 1u) : 1;
  worker.lanes = may_measure ? std::min(known, hello.lanes()) : hello.lanes();
  worker.incarnation = hello.incarnation();
  worker.device = hello.device();
  worker.device_kind = hello.device_kind();
  worker.build = hello.build();
  worker.no_programs = hello.no_programs();
  worker.trainers.clear();
  for (const v1::TrainerInfo& info : hello.trainers()) {
    worker.trainers[info.name()] = info.environment();
  }
  worker.numerics_version = hello.numerics_version();
  worker.config_version = hello.config_version();
  worker.memory_bytes = hello.memory_bytes();
  worker.device_use.reset();
  worker.analysis = hello.role() == v1::ANALYSIS;
  worker.leaving = worker.leaving || (draining_ && !IsElsewhere(hello.worker()));
  worker.session = id;
  worker.reported_at = worker.progress_at = clock_->Now();
  worker.attach_time = absl::ToUnixMicros(absl::Now());
  const bool ends = hello.has_time_left_s();
  const absl::Duration left = absl::Seconds(hello.time_left_s());
  worker.ends_at = ends ? clock_->Now() + left : absl::InfiniteDuration();
  worker.end_time = ends ? worker.attach_time + absl::ToInt64Microseconds(left) : 0;
  sessions_[id].worker = hello.worker();
  sessions_[id].incarnation = hello.incarnation();
}

absl::Status Scheduler::SendDecisions(Session id, const v1::Hello& hello) {
  WorkerState& worker = workers_[hello.worker()];
  for (const v1::HeldLease& held : hello.held()) {
    ASSIGN_OR_RETURN(storage::HeldLeaseDecision decision,
                     store_->CheckLease(held.lease(), hello.incarnation(), held.first_unacked()));
    v1::ToWorker message;
    message.mutable_decision()->set_lease(held.lease());
    const auto lease = worker.leases.find(held.lease());
    const bool known = lease != worker.leases.end();
    if (decision.drop || (known && lease->second.end_with_store)) {
      message.mutable_decision()->set_drop(true);
      End(hello.worker(), held.lease(),
          {storage::LeaseEnd::kLost, "the worker has events that the server does not know of"});
    } else {
      message.mutable_decision()->set_acked(decision.acked);
      message.mutable_decision()->set_credit_bytes(options_.credit_bytes);
      // An end that could not be committed in time did not happen.
      if (known) lease->second.ending.reset();
    }
    SendTo(id, message);
  }
  return absl::OkStatus();
}

void Scheduler::EndAbsentLeases(const v1::Hello& hello) {
  std::set<absl::string_view> held;
  for (const v1::HeldLease& lease : hello.held()) held.insert(lease.lease());
  WorkerState& worker = workers_[hello.worker()];
  std::vector<std::pair<std::string, storage::LeaseEnding>> endings;
  for (const auto& [id, lease] : worker.leases) {
    if (lease.ending.has_value()) continue;
    if (lease.incarnation != hello.incarnation()) {
      endings.push_back({id,
                         {lease.started ? storage::LeaseEnd::kLost : storage::LeaseEnd::kReleased,
                          "a new process took the worker's place"}});
    } else if (held.count(id) == 0) {
      // Counted as a loss; otherwise a grant that breaks its stream would be repeated forever.
      endings.push_back({id, {storage::LeaseEnd::kLost, "the worker does not hold it"}});
    }
  }
  for (auto& [id, ending] : endings) End(hello.worker(), id, std::move(ending));
}

void Scheduler::OnHeartbeat(Session id, const v1::Heartbeat& heartbeat) {
  if (absl::Status status = CheckHeartbeat(heartbeat); !status.ok()) {
    Close(id, status);
    return;
  }
  const absl::Duration now = clock_->Now();
  WorkerState& worker = workers_[sessions_[id].worker];
  worker.reported_at = now;
  worker.device_use.reset();
  if (heartbeat.has_device_use()) worker.device_use = heartbeat.device_use();
  const uint32_t lanes = heartbeat.lanes() > 0 ? heartbeat.lanes() : worker.most_lanes;
  const bool more = lanes > worker.lanes;
  worker.lanes = std::min(lanes, worker.most_lanes);
  if (worker.load() == 0) worker.progress_at = now;
  for (const v1::LeaseProgress& progress : heartbeat.leases()) {
    const absl::Duration stepped_at = now - absl::Milliseconds(progress.since_progress_ms());
    worker.progress_at = std::max(worker.progress_at, stepped_at);
    HeldLease* const lease = worker.Find(progress.lease());
    if (lease == nullptr) {
      // It has ended, but the worker has not received that.
      SendCancel(id, progress.lease());
      continue;
    }
    lease->started = true;
    lease->reported_at = now;
    lease->stalled_since = stepped_at;
  }
  if (more) Dispatch();
}

void Scheduler::SendTo(Session id, const v1::ToWorker& message) {
  const auto found = sessions_.find(id);
  if (found != sessions_.end()) found->second.stream->Send(message);
}

void Scheduler::SendCancel(Session id, absl::string_view lease) {
  v1::ToWorker message;
  message.mutable_cancel()->set_lease(std::string(lease));
  SendTo(id, message);
}

void Scheduler::Closed(Session id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Attachment ended = std::move(found->second);
  sessions_.erase(found);
  analyses_.Detached(id);
  const auto worker = workers_.find(ended.worker);
  if (worker != workers_.end() && worker->second.session == id) {
    worker->second.session = 0;
    worker->second.detached_at = clock_->Now();
    const auto process = processes_.find(ended.worker);
    if (process != processes_.end()) process->second.alone_since = clock_->Now();
  }
  // The received events may include a run's end that nobody will resend.
  SharedGroup rest = ended.events.TakeAll();
  if (rest != nullptr) Submit({id, ended.worker, ended.incarnation, std::move(rest)});
}

void Scheduler::Close(Session id, const absl::Status& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const std::shared_ptr<WorkerStream> stream = found->second.stream;
  Closed(id);
  stream->Close(why);
}

}  // namespace ablate::schedule
