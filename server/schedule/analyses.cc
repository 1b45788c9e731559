#include "server/schedule/analyses.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "server/schedule/scheduler.h"
#include "server/schedule/worker_names.h"

namespace ablate::schedule {

namespace v1 = worker::v1;

namespace {

absl::Status WorkerEnded(absl::string_view how) {
  return absl::UnavailableError(absl::StrCat("the worker for analyses ", how,
                                             " during this request. It restarts, and no run is "
                                             "affected; retry"));
}

absl::Status FailureOf(const v1::AnalysisFailed& failed) {
  constexpr uint32_t kMaxCode = static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  const bool known = failed.code() > 0 && failed.code() <= kMaxCode;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(failed.code()) : absl::StatusCode::kUnknown,
      failed.message());
}

bool HasState(const AnalysisRequest& request) {
  return !request.message.computation().state_blob().empty();
}

std::string IdOf(const v1::FromWorker& message) {
  if (message.has_analysis_part()) return message.analysis_part().id();
  if (message.has_analysis_result()) return message.analysis_result().id();
  if (message.has_analysis_saved()) return message.analysis_saved().id();
  return message.analysis_failed().id();
}

}  // namespace

Analyses::Analyses(const Clock* clock, AnalysisLimits limits)
    : clock_(clock), limits_(limits), alone_since_{clock->Now(), clock->Now()} {}

Analyses::~Analyses() { Stop(); }

absl::StatusOr<std::string> Analyses::Submit(AnalysisRequest request) {
  MutexLock lock(&mutex_);
  if (stopped_) return absl::UnavailableError("the server is shutting down");
  const auto is_samples = [](const Pending& pending) {
    return !pending.request.message.has_computation();
  };
  const auto samples =
      static_cast<size_t>(std::count_if(pending_.begin(), pending_.end(), is_samples));
  if (!request.message.has_computation() && samples >= limits_.max_pending) {
    return absl::ResourceExhaustedError(absl::StrCat("too many samples at once; expected at most ",
                                                     limits_.max_pending, ". Retry later"));
  }
  // A larger message would end the stream, and with it the worker's other work.
  if (const size_t bytes = request.message.ByteSizeLong(); bytes > limits_.message_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the analysis has ", bytes, " bytes; expected at most ", limits_.message_bytes));
  }
  Pending& pending = pending_.emplace_back();
  pending.id = process::RandomId();
  pending.request = std::move(request);
  pending.request.message.set_id(pending.id);
  pending.since = clock_->Now();
  std::string id = pending.id;
  Dispatch();
  return id;
}

void Analyses::Cancel(const std::string& id) {
  MutexLock lock(&mutex_);
  End(id, absl::CancelledError("the call was cancelled"));
}

absl::Status Analyses::MayRead(const std::string& id, absl::string_view user,
                               absl::string_view sha256) const {
  MutexLock lock(&mutex_);
  for (const Pending& pending : pending_) {
    if (pending.id != id || pending.session == 0 || !IsOfUser(pending.worker, user)) continue;
    const auto& blobs = pending.request.blobs;
    const bool own = pending.request.message.computation().state_blob() == sha256 ||
                     std::any_of(blobs.begin(), blobs.end(),
                                 [&](const auto& pin) { return pin->sha256() == sha256; });
    if (own) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("analysis ", id, " may not read blob ", sha256,
                                                    "; expected one of its blobs"));
  }
  return absl::NotFoundError(
      absl::StrCat("analysis ", id, " isn't running on a worker of this user"));
}

bool Analyses::MayWrite(const std::string& id, absl::string_view user) const {
  MutexLock lock(&mutex_);
  return std::any_of(pending_.begin(), pending_.end(), [&](const Pending& pending) {
    return pending.id == id && pending.session != 0 && IsOfUser(pending.worker, user) &&
           pending.request.message.has_computation();
  });
}

std::vector<std::string> Analyses::Computations() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const Pending& pending : pending_) {
    if (pending.request.message.has_computation()) ids.push_back(pending.id);
  }
  return ids;
}

void Analyses::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  EndAll(absl::UnavailableError("the server is shutting down"));
}

void Analyses::Attached(Session session, const std::string& worker, uint32_t slots, bool on_gpu,
                        std::shared_ptr<WorkerStream> stream) {
  MutexLock lock(&mutex_);
  EndOrphansOf(worker, WorkerEnded("lost its connection"));
  Worker& attached = workers_[session];
  attached.name = worker;
  attached.stream = std::move(stream);
  attached.slots = std::max(slots, 1u);
  attached.on_gpu = on_gpu;
  Dispatch();
}

void Analyses::Receive(Session session, const v1::FromWorker& message) {
  MutexLock lock(&mutex_);
  const auto worker = workers_.find(session);
  const std::string id = IdOf(message);
  if (worker == workers_.end() || worker->second.held.count(id) == 0) return;
  Pending* const pending = Find(id);
  if (message.has_analysis_part()) {
    if (pending != nullptr && pending->request.part) {
      pending->answered = true;
      pending->request.part(message.analysis_part());
    }
    return;
  }
  if (message.has_analysis_saved()) {
    return OnSaved(&worker->second, pending, message.analysis_saved());
  }
  worker->second.held.erase(id);
  if (message.has_analysis_failed()) {
    const absl::Status why = FailureOf(message.analysis_failed());
    // Its device is lost and it ends; a new request would be lost with it.
    if (absl::IsUnavailable(why)) worker->second.drained = true;
    const bool on_cores = pending != nullptr && worker->second.on_gpu && MayUseCores(*pending);
    if (absl::IsResourceExhausted(why) && on_cores) {
      BeginAgainOnCores(pending);
    } else {
      End(id, why);
    }
  } else {
    End(id, message.analysis_result());
  }
  Dispatch();
}

bool Analyses::MayUseCores(const Pending& pending) const {
  return !pending.answered && (IsServed(false) || MayReturn(false, limits_.device_timeout));
}

void Analyses::BeginAgainOnCores(Pending* pending) {
  DropState(pending);
  pending->on_cores = true;
  pending->session = 0;
  pending->since = clock_->Now();
  pending->yielding = false;
}

void Analyses::DropState(Pending* pending) {
  if (!pending->request.message.has_computation()) return;
  pending->request.message.mutable_computation()->clear_state_blob();
  pending->progress = 0;
  if (pending->request.restarted) pending->request.restarted();
}

void Analyses::Detached(Session session) {
  MutexLock lock(&mutex_);
  const auto worker = workers_.find(session);
  if (worker == workers_.end()) return;
  const absl::Duration now = clock_->Now();
  alone_since_[worker->second.on_gpu] = now;
  workers_.erase(worker);
  for (Pending& pending : pending_) {
    if (pending.session != session) continue;
    pending.session = 0;
    pending.orphaned = true;
    pending.since = now;
  }
  Dispatch();  // those that waited for the last GPU
}

void Analyses::Exited(absl::string_view worker, absl::string_view last_words) {
  MutexLock lock(&mutex_);
  last_words_ = std::string(last_words);
  EndOrphansOf(worker, WorkerEnded(absl::StrCat("ended (", last_words, ")")));
}

void Analyses::Tick() {
  MutexLock lock(&mutex_);
  std::vector<std::pair<std::string, absl::Status>> overdue;
  for (const Pending& pending : pending_) {
    if (absl::Status why = Overdue(pending); !why.ok()) overdue.emplace_back(pending.id, why);
  }
  for (const auto& [id, why] : overdue) End(id, why);
  Dispatch();  // no worker may have returned in time
  DrainStuck();
}

bool Analyses::Busy(Session session) const {
  MutexLock lock(&mutex_);
  const auto worker = workers_.find(session);
  return worker != workers_.end() && !worker->second.held.empty();
}

void Analyses::Dispatch() {
  for (const bool on_gpu : {true, false}) DispatchTo(on_gpu);
  AskToYield();
}

void Analyses::DispatchTo(bool on_gpu) {
  for (const Class kind : kClasses) {
    while (Pending* const next = NextWaiting(kind, on_gpu)) {
      Session session = 0;
      Worker* const worker = FindIdle(*next, &session);
      // Requests that yielded to this one, which runs alone, would only delay it again.
      if (worker == nullptr && next->request.alone) return;
      if (worker == nullptr) break;
      HandTo(worker, session, next);
    }
  }
}

bool Analyses::IsServed(bool on_gpu) const {
  return std::any_of(workers_.begin(), workers_.end(), [on_gpu](const auto& worker) {
    return worker.second.on_gpu == on_gpu && !worker.second.drained;
  });
}

bool Analyses::MayReturn(bool on_gpu, absl::Duration timeout) const {
  const bool leaving = std::any_of(workers_.begin(), workers_.end(), [on_gpu](const auto& worker) {
    return worker.second.on_gpu == on_gpu;
  });
  return leaving || clock_->Now() - alone_since_[on_gpu] < timeout;
}

bool Analyses::IsForGpu(const Pending& pending) const {
  // It tries the GPU once more if the cores have no worker after all.
  if (pending.on_cores && MayUseCores(pending)) return false;
  // A state belongs to its kind of device; on the other kind the computation begins again.
  const bool has_state = HasState(pending.request);
  const bool wanted = has_state ? pending.request.state_on_gpu : pending.request.on_gpu;
  if (IsServed(wanted)) return wanted;
  const absl::Duration timeout = has_state ? limits_.state_timeout : limits_.device_timeout;
  if ((has_state || !wanted) && MayReturn(wanted, timeout)) return wanted;
  return !wanted && IsServed(true);
}

void Analyses::HandTo(Worker* worker, Session session, Pending* pending) {
  if (HasState(pending->request) && pending->request.state_on_gpu != worker->on_gpu) {
    DropState(pending);
  }
  pending->session = session;
  pending->worker = worker->name;
  pending->since = clock_->Now();
  pending->yielding = false;
  worker->held[pending->id] = {ShareOf(*pending)};
  v1::ToWorker message;
  *message.mutable_analyze() = pending->request.message;
  worker->stream->Send(message);
  if (pending->request.begun) pending->request.begun();
}

Analyses::Class Analyses::ClassOf(const Pending& pending) const {
  if (!pending.request.message.has_computation()) return Class::kSamples;
  return pending.request.work <= limits_.short_work ? Class::kShort : Class::kLong;
}

Analyses::Share Analyses::ShareOf(const Pending& pending) const {
  return {ClassOf(pending), pending.request.alone, pending.request.state};
}

bool Analyses::FitTogether(const Share& one, const Share& other) {
  return one.kind != other.kind && !one.alone && !other.alone && one.state + other.state <= 1;
}

bool Analyses::Takes(const Worker& worker, const Share& share) {
  if (worker.drained || worker.held.size() >= worker.slots) return false;
  size_t computations = 0, alike = 0;
  double state = share.state;
  for (const auto& [id, held] : worker.held) {
    if (share.alone || held.share.alone) return false;
    if (held.share.kind != Class::kSamples) ++computations;
    if (held.share.kind == share.kind) ++alike;
    state += held.share.state;
  }
  if (share.kind == Class::kSamples) return alike == 0;
  const size_t most = std::max<size_t>(worker.slots, 2) - 1;
  const bool keeps_one =
      share.kind == Class::kLong || NextWaiting(Class::kLong, worker.on_gpu) != nullptr;
  const size_t most_alike = keeps_one ? std::max<size_t>(most, 2) - 1 : most;
  return computations < most && alike < most_alike && (computations == 0 || state <= 1);
}

double Analyses::Left(const Pending& pending) {
  return pending.request.message.has_computation()
             ? pending.request.work * (1 - pending.progress)
             : -1;  // somebody waits for samples, and they are short
}

Analyses::Pending* Analyses::NextWaiting(Class kind, bool on_gpu) {
  Pending* next = nullptr;
  for (Pending& pending : pending_) {
    if (pending.session != 0 || pending.orphaned || ClassOf(pending) != kind) continue;
    if (IsForGpu(pending) != on_gpu) continue;
    if (next == nullptr || Left(pending) < Left(*next)) next = &pending;
  }
  return next;
}

void Analyses::AskToYield() {
  for (const bool on_gpu : {true, false}) {
    for (const Class kind : kClasses) {
      const Pending* const next = NextWaiting(kind, on_gpu);
      Pending* const yielding = next == nullptr ? nullptr : InTheWayOf(*next);
      if (yielding == nullptr) continue;
      yielding->yielding = true;
      v1::ToWorker message;
      message.mutable_yield_analysis()->set_id(yielding->id);
      workers_[yielding->session].stream->Send(message);
    }
  }
}

// Less than half: equal ones each run to their end, and one is interrupted only a few times, so
// that saving takes a small fraction of the time.
Analyses::Pending* Analyses::InTheWayOf(const Pending& waiting) {
  const Share share = ShareOf(waiting);
  const bool on_gpu = IsForGpu(waiting);
  Pending* found = nullptr;
  for (Pending& pending : pending_) {
    const auto worker = workers_.find(pending.session);
    if (worker == workers_.end() || worker->second.drained) continue;
    if (worker->second.on_gpu != on_gpu) continue;
    // With a slot for each class, a request waits only for those that it doesn't fit with.
    const bool shared = worker->second.slots < std::size(kClasses);
    if (!shared && FitTogether(share, ShareOf(pending))) continue;
    if (pending.yielding) return nullptr;  // room is being made already
    if (ClassOf(pending) == Class::kSamples) continue;
    const absl::Duration turn = pending.yielded ? limits_.later_turn : limits_.turn;
    const bool over = clock_->Now() - pending.since >= turn;
    if (found == nullptr && over && 2 * Left(waiting) < Left(pending)) found = &pending;
  }
  return found;
}

void Analyses::OnSaved(Worker* worker, Pending* pending, const v1::AnalysisSaved& saved) {
  if (saved.yielded()) worker->held.erase(saved.id());
  if (pending != nullptr && pending->request.message.has_computation()) {
    if (!saved.state_blob().empty()) {
      pending->request.message.mutable_computation()->set_state_blob(saved.state_blob());
      pending->request.alone = false;
      pending->request.state_on_gpu = worker->on_gpu;
      if (!saved.yielded()) worker->held[saved.id()].share.alone = false;
    }
    pending->progress = saved.progress();
    if (saved.yielded()) {
      pending->session = 0;
      pending->since = clock_->Now();
      pending->yielded = true;
    }
    if (pending->request.saved) pending->request.saved(saved, worker->on_gpu);
  }
  Dispatch();  // there may be room, and reports are more frequent than ticks
}

Analyses::Worker* Analyses::FindIdle(const Pending& next, Session* session) {
  const Share share = ShareOf(next);
  const bool on_gpu = IsForGpu(next);
  for (auto& [id, worker] : workers_) {
    if (worker.on_gpu != on_gpu || !Takes(worker, share)) continue;
    *session = id;
    return &worker;
  }
  return nullptr;
}

Analyses::Pending* Analyses::Find(absl::string_view id) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [id](const Pending& pending) { return pending.id == id; });
  return found == pending_.end() ? nullptr : &*found;
}

void Analyses::End(absl::string_view id, const absl::StatusOr<v1::AnalysisResult>& result) {
  Pending* const pending = Find(id);
  if (pending == nullptr) return;
  const auto worker = workers_.find(pending->session);
  if (worker != workers_.end()) {
    if (const auto held = worker->second.held.find(pending->id);
        held != worker->second.held.end()) {
      held->second.withdrawn_at = clock_->Now();
      v1::ToWorker message;
      message.mutable_cancel_analysis()->set_id(pending->id);
      worker->second.stream->Send(message);
    }
  }
  const Pending ended = std::move(*pending);
  pending_.erase(pending_.begin() + (pending - pending_.data()));
  ended.request.done(result);
}

void Analyses::EndOrphansOf(absl::string_view worker, const absl::Status& why) {
  std::vector<std::string> ids;
  for (const Pending& pending : pending_) {
    if (pending.orphaned && pending.worker == worker) ids.push_back(pending.id);
  }
  for (const std::string& id : ids) End(id, why);
}

void Analyses::EndAll(const absl::Status& why) {
  while (!pending_.empty()) {
    const std::string id = pending_.front().id;
    End(id, why);
  }
}

absl::Status Analyses::Overdue(const Pending& pending) const {
  const absl::Duration now = clock_->Now();
  if (pending.orphaned) {
    const bool due = now - pending.since >= limits_.exit_timeout;
    return due ? WorkerEnded("lost its connection") : absl::OkStatus();
  }
  if (pending.request.message.has_computation()) return absl::OkStatus();
  if (pending.session != 0) {
    if (now - pending.since < limits_.run_time) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat("the analysis ran longer than ", absl::FormatDuration(limits_.run_time),
                     ", the limit. Request fewer or shorter samples"));
  }
  const bool on_gpu = IsForGpu(pending);
  const bool alone = std::none_of(workers_.begin(), workers_.end(), [on_gpu](const auto& worker) {
    return worker.second.on_gpu == on_gpu;
  });
  if (!alone || now - std::max(pending.since, alone_since_[on_gpu]) < limits_.worker_timeout) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("no worker for analyses", workers_.empty() ? "" : " on the cores",
                   " has been attached for ", absl::FormatDuration(limits_.worker_timeout),
                   last_words_.empty() ? "" : absl::StrCat("; the last one ended: ", last_words_)));
}

void Analyses::DrainStuck() {
  for (auto& [session, worker] : workers_) {
    if (worker.drained || !IsStuck(worker)) continue;
    worker.drained = true;
    v1::ToWorker message;
    message.mutable_drain();
    worker.stream->Send(message);
  }
}

bool Analyses::IsStuck(const Worker& worker) const {
  const absl::Duration now = clock_->Now();
  const bool makes_others = std::any_of(
      worker.held.begin(), worker.held.end(),
      [](const auto& held) { return held.second.withdrawn_at == absl::InfiniteDuration(); });
  for (const auto& [id, held] : worker.held) {
    const absl::Duration kept = now - held.withdrawn_at;
    if (!makes_others && kept >= limits_.cancel_timeout) return true;
    if (kept >= limits_.held_up_timeout && HoldsUpOthers(held.share, worker.on_gpu)) return true;
  }
  return false;
}

bool Analyses::HoldsUpOthers(const Share& share, bool on_gpu) const {
  for (const Pending& pending : pending_) {
    const bool waits = pending.session == 0 && !pending.orphaned && IsForGpu(pending) == on_gpu;
    if (waits && !FitTogether(ShareOf(pending), share)) return true;
  }
  return false;
}

}  // namespace ablate::schedule
