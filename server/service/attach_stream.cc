// A worker's long stream: hands its messages to the scheduler and the scheduler's to it.
#include "server/service/attach_stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/schedule/clock.h"
#include "server/service/call.h"
#include "server/service/errors.h"

namespace ablate::service {
namespace {

// For a write that the worker does not take, after the stream was to end.
constexpr absl::Duration kPatience = absl::Seconds(2);

// The blob that an event names, or empty.
absl::string_view BlobOf(const worker::v1::Event& event) {
  if (event.has_checkpoint()) return event.checkpoint().blob();
  if (event.has_resume_state()) return event.resume_state().blob();
  return "";
}

}  // namespace

AttachReactor::AttachReactor(WorkerBackend* backend, grpc::CallbackServerContext* context)
    : backend_(backend), context_(context), pace_(backend->pace) {}

AttachReactor* AttachReactor::Start(WorkerBackend* backend, grpc::CallbackServerContext* context) {
  // The constructor is private, so that every reactor owns itself.
  std::shared_ptr<AttachReactor> reactor(new AttachReactor(backend, context));
  reactor->self_ = reactor;
  if (const absl::Status accepted = backend->streams.Add(reactor.get()); accepted.ok()) {
    reactor->Open();
  } else {
    reactor->End(accepted);
  }
  return reactor.get();
}

void AttachReactor::Open() {
  {
    MutexLock lock(&mutex_);
    left_ = false;
  }
  backend_->scheduler->Post([self = shared_from_this()](schedule::Scheduler& scheduler) {
    self->session_ = scheduler.Open(self);
    self->ReadNext();
  });
}

void AttachReactor::ReadNext() {
  MutexLock lock(&mutex_);
  if (!ending_) StartRead(&incoming_);
}

void AttachReactor::OnReadDone(bool ok) {
  if (!ok) {
    Leave();
    End(absl::OkStatus());
    return;
  }
  if (incoming_.has_event()) {
    const worker::v1::Event& event = incoming_.event();
    const absl::string_view blob = BlobOf(event);
    if (!blob.empty()) backend_->pins.Named(event.lease(), event.seq(), blob);
  }
  backend_->scheduler->Post([self = shared_from_this()](schedule::Scheduler& scheduler) {
    scheduler.Receive(self->session_, self->incoming_);
    self->ReadNext();
  });
}

void AttachReactor::Send(const worker::v1::ToWorker& message) {
  MutexLock lock(&mutex_);
  if (ending_) return;  // the server may be gone, too
  if (message.has_ack()) backend_->pins.Acknowledged(message.ack().lease(), message.ack().seq());
  outgoing_bytes_ += message.ByteSizeLong();
  if (outgoing_bytes_ > kMostUnsentBytes) {
    EndLocked(absl::ResourceExhaustedError(
        absl::StrCat("the worker does not read: ", outgoing_bytes_, " bytes wait for it")));
    return;
  }
  outgoing_.push_back(message);
  if (outgoing_.size() == 1) WriteFirst();
}

void AttachReactor::WriteFirst() {
  pace_.Write(outgoing_.front().ByteSizeLong(), schedule::SteadyClock().Now());
  StartWrite(&outgoing_.front());
}

void AttachReactor::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  pace_.Written(schedule::SteadyClock().Now());
  outgoing_bytes_ -= outgoing_.front().ByteSizeLong();
  outgoing_.pop_front();
  if (!ok || ending_) outgoing_.clear();
  if (ending_) {
    Finish(ToGrpc(end_));
  } else if (!outgoing_.empty()) {
    WriteFirst();
  }
  // If the write failed, a read fails too and ends the stream.
}

void AttachReactor::Close(const absl::Status& why) { End(why); }

void AttachReactor::Stop() { End(ServerEnds()); }

void AttachReactor::Look(absl::Duration now) {
  if (pace_.TooSlow(now)) EndNow(context_, TooSlow(pace_));
}

void AttachReactor::OnCancel() {
  Leave();
  End(absl::CancelledError("the worker is gone"));
}

void AttachReactor::Leave() {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(left_, true)) return;
  }
  backend_->scheduler->Post([self = shared_from_this()](schedule::Scheduler& scheduler) {
    scheduler.Closed(self->session_);
  });
}

void AttachReactor::End(const absl::Status& status) {
  MutexLock lock(&mutex_);
  EndLocked(status);
}

void AttachReactor::EndLocked(const absl::Status& status) {
  if (std::exchange(ending_, true)) return;
  end_ = status;
  if (outgoing_.empty()) {
    Finish(ToGrpc(end_));
    return;
  }
  backend_->pool->PostAfter(kPatience, [self = shared_from_this()] { self->Abort(); });
}

void AttachReactor::Abort() {
  MutexLock lock(&mutex_);
  if (!done_) context_->TryCancel();
}

void AttachReactor::OnDone() {
  Leave();
  backend_->streams.Remove(this);
  {
    MutexLock lock(&mutex_);
    done_ = true;
  }
  self_.reset();
}

}  // namespace ablate::service
