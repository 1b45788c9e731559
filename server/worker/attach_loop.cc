#include "server/worker/attach_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/worker/channel.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

AttachLoop::AttachLoop(AttachOptions options, std::unique_ptr<AttachClient> client)
    : options_(std::move(options)),
      client_(std::move(client)),
      detached_at_(MonotonicNow()),
      busy_at_(detached_at_) {}

AttachLoop::~AttachLoop() { Stop(); }

void AttachLoop::Run(AttachRequests requests) {
  requests_ = std::move(requests);
  thread_ = std::thread([this] { Loop(); });
}

void AttachLoop::Stop() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void AttachLoop::Send(v1::FromWorker message) {
  MutexLock lock(&mutex_);
  if (stream_ != nullptr) stream_->Send(std::move(message));
}

bool AttachLoop::WaitForChange(absl::Duration deadline) {
  const absl::Duration left = deadline - MonotonicNow();
  if (left <= absl::ZeroDuration()) return false;
  changed_.WaitFor(&mutex_, absl::ToChronoMilliseconds(absl::Ceil(left, absl::Milliseconds(1))));
  return true;
}

bool AttachLoop::Flush(absl::Duration timeout) {
  const absl::Duration deadline = MonotonicNow() + timeout;
  MutexLock lock(&mutex_);
  while (stream_ != nullptr && !ended_ && stream_->Unsent()) {
    if (!WaitForChange(deadline)) return false;
  }
  return true;
}

void AttachLoop::Report(v1::Event event) {
  MutexLock lock(&mutex_);
  SendAll(book_.Report(std::move(event)));
}

bool AttachLoop::HasCredit(const std::string& lease) const {
  MutexLock lock(&mutex_);
  return book_.HasCredit(lease);
}

absl::Duration AttachLoop::IdleTime() const {
  MutexLock lock(&mutex_);
  return book_.empty() ? MonotonicNow() - busy_at_ : absl::ZeroDuration();
}

bool AttachLoop::WasAttached() const {
  MutexLock lock(&mutex_);
  return was_attached_;
}

bool AttachLoop::WaitUntilSettled(absl::Duration timeout) {
  const absl::Duration deadline = MonotonicNow() + timeout;
  MutexLock lock(&mutex_);
  while (!book_.empty()) {
    if (!WaitForChange(deadline)) return false;
  }
  return true;
}

void AttachLoop::Loop() {
  Backoff backoff(options_.first_wait, options_.longest_wait);
  while (true) {
    if (RunStream()) backoff.Reset();
    absl::Status refused;
    {
      MutexLock lock(&mutex_);
      if (stop_) return;
      refused = refused_;
    }
    if (!refused.ok()) {
      // A retry would be rejected again.
      DropLeases();
      requests_.refused(refused);
      return;
    }
    SayWhyNotAttached();
    CheckAbsence();
    WaitBeforeRetry(backoff.Next());
  }
}

bool AttachLoop::RunStream() {
  AttachCallbacks callbacks;
  callbacks.received = [this](const v1::ToWorker& message) { Received(message); };
  callbacks.sent = [this] {
    MutexLock lock(&mutex_);
    changed_.SignalAll();
  };
  callbacks.ended = [this](const absl::Status& status) { Ended(status); };
  std::unique_ptr<AttachStream> stream;
  {
    // Under the lock, so that no event comes between Hello's held leases and the stream.
    MutexLock lock(&mutex_);
    v1::Hello hello = options_.hello;
    for (v1::HeldLease& held : book_.Held()) *hello.add_held() = std::move(held);
    if (options_.ends_at != absl::InfiniteDuration()) {
      const absl::Duration left = options_.ends_at - MonotonicNow();
      hello.set_time_left_s(
          static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Seconds(left), 0)));
    }
    welcomed_ = ended_ = false;
    stream = client_->Open(std::move(hello), std::move(callbacks));
    stream_ = stream.get();
  }
  KeepStream(stream.get());
  bool welcomed = false;
  {
    MutexLock lock(&mutex_);
    stream_ = nullptr;
    welcomed = welcomed_;
    if (welcomed) detached_at_ = MonotonicNow();
  }
  stream.reset();
  if (requests_.disconnected) requests_.disconnected();
  MutexLock lock(&mutex_);
  book_.Disconnected();
  return welcomed;
}

void AttachLoop::KeepStream(AttachStream* stream) {
  absl::Duration due = MonotonicNow() + options_.welcome_timeout;
  bool welcomed = false;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (ended_ || stop_) return;
      if (welcomed_ && !welcomed) {
        due = MonotonicNow() + (requests_.lanes ? absl::ZeroDuration() : heartbeat_);
      }
      welcomed = welcomed_;
      if (WaitForChange(due)) continue;
      due = MonotonicNow() + heartbeat_;
    }
    if (!welcomed) {
      spdlog::warn("the server does not answer: attaching again");
      stream->Cancel();
      return;
    }
    SendHeartbeat();
  }
}

void AttachLoop::SendHeartbeat() {
  v1::FromWorker message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  if (requests_.progress) {
    for (v1::LeaseProgress& lease : requests_.progress()) {
      *heartbeat.add_leases() = std::move(lease);
    }
  }
  if (requests_.device_use) {
    if (auto use = requests_.device_use()) *heartbeat.mutable_device_use() = *std::move(use);
  }
  if (requests_.lanes) heartbeat.set_lanes(requests_.lanes());
  Send(std::move(message));
}

void AttachLoop::Received(const v1::ToWorker& message) {
  Instructions instructions;
  {
    MutexLock lock(&mutex_);
    if (message.has_welcome()) {
      spdlog::info("attached");
      welcomed_ = was_attached_ = true;
      heartbeat_ =
          std::max(absl::Milliseconds(message.welcome().heartbeat_ms()), absl::Milliseconds(10));
      grace_ = absl::Milliseconds(message.welcome().grace_ms());
    }
    const bool had_lease = !book_.empty();
    instructions = book_.Receive(message);
    if (had_lease || !book_.empty()) busy_at_ = MonotonicNow();
    SendAll(std::move(instructions.send));
    changed_.SignalAll();
  }
  if (!instructions.stop.empty()) requests_.abandon(instructions.stop);
  if (!instructions.save.empty() && requests_.save) requests_.save(instructions.save);
  if (instructions.start.has_value() && requests_.start) {
    requests_.start(*std::move(instructions.start));
  }
  if (instructions.drain) requests_.drain();
  if (message.has_analyze() && requests_.analyze) requests_.analyze(message.analyze());
  if (message.has_cancel_analysis() && requests_.cancel_analysis) {
    requests_.cancel_analysis(message.cancel_analysis().id());
  }
  if (message.has_yield_analysis() && requests_.yield_analysis) {
    requests_.yield_analysis(message.yield_analysis().id());
  }
}

void AttachLoop::Ended(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (welcomed_ && !stop_) spdlog::warn("the stream to the server broke: {}", status.ToString());
  why_not_attached_ = welcomed_ ? absl::OkStatus() : status;
  // Nothing else ends a welcomed stream with this code.
  if (welcomed_ && absl::IsAlreadyExists(status)) {
    spdlog::warn("another process has this worker's name, {}: leaving", options_.hello.worker());
    refused_ = absl::AlreadyExistsError(
        absl::StrCat("another process attached as ", options_.hello.worker(), " of the same user"));
  }
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) refused_ = status;
  // Before the Welcome it is about a release that the server doesn't work with.
  if (!welcomed_ && absl::IsFailedPrecondition(status)) {
    refused_ = absl::PermissionDeniedError(status.message());
  }
  ended_ = true;
  changed_.SignalAll();
}

void AttachLoop::DropLeases() {
  std::vector<std::string> dropped;
  {
    MutexLock lock(&mutex_);
    dropped = book_.DropAll();
    changed_.SignalAll();
  }
  for (const std::string& lease : dropped) requests_.abandon(lease);
}

void AttachLoop::SayWhyNotAttached() {
  absl::Status why;
  {
    MutexLock lock(&mutex_);
    why = why_not_attached_;
    if (std::exchange(said_, why) == why || why.ok()) return;
  }
  if (absl::IsUnavailable(why) && options_.diagnose) {
    const absl::Status found = options_.diagnose();
    if (!found.ok()) why = found;
  }
  spdlog::warn("not attached, trying on: {}", why.ToString());
}

void AttachLoop::CheckAbsence() {
  bool too_long = false, orphaned = false;
  absl::Duration absent;
  {
    MutexLock lock(&mutex_);
    absent = MonotonicNow() - detached_at_;
    too_long = absent > grace_ && !book_.empty();
    orphaned = absent > options_.orphan_timeout && (too_long || book_.empty());
  }
  if (too_long) {
    spdlog::warn("without a server for {}: dropping all leases", absl::FormatDuration(absent));
    DropLeases();
  }
  if (orphaned) requests_.drain();
}

void AttachLoop::WaitBeforeRetry(absl::Duration wait) {
  const absl::Duration until = MonotonicNow() + wait;
  MutexLock lock(&mutex_);
  while (!stop_ && WaitForChange(until)) {
  }
}

void AttachLoop::SendAll(std::vector<v1::FromWorker> messages) {
  if (stream_ == nullptr) return;
  for (v1::FromWorker& message : messages) stream_->Send(std::move(message));
}

}  // namespace ablate::worker
