// A worker's stream.
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/rpc/call.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/work_pool.h"
#include "server/schedule/scheduler_thread.h"
#include "server/schedule/worker_names.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

// For a write that the worker doesn't read after the stream has to end.
constexpr absl::Duration kWriteTimeout = absl::Seconds(2);

// Returns the blob that an event names, or empty.
absl::string_view BlobOf(const worker::v1::Event& event) {
  if (event.has_checkpoint()) return event.checkpoint().blob();
  if (event.has_resume_state()) return event.resume_state().blob();
  return "";
}

// Replaces the name of a blob that was not written under the message's lease, or for its analysis,
// by a missing one: knowing a hash gives a worker no right to the stored bytes. Its lease is then
// lost, as when the blob was swept: pins don't outlive the server.
void DropForeignBlobs(const rpc::BlobPins& pins, worker::v1::FromWorker* message) {
  static const std::string kNoBlob(64, '0');
  if (message->has_event()) {
    worker::v1::Event* event = message->mutable_event();
    if (BlobOf(*event).empty() || pins.Holds(event->lease(), BlobOf(*event))) return;
    if (event->has_checkpoint()) event->mutable_checkpoint()->set_blob(kNoBlob);
    if (event->has_resume_state()) event->mutable_resume_state()->set_blob(kNoBlob);
  } else if (message->has_analysis_saved()) {
    auto* saved = message->mutable_analysis_saved();
    if (!pins.Holds(saved->id(), saved->state_blob())) saved->clear_state_blob();
  } else if (message->has_analysis_result()) {
    auto* result = message->mutable_analysis_result();
    const std::string& blob = result->computation().analysis().artifact();
    if (blob.empty() || pins.Holds(result->id(), blob)) return;
    result->mutable_computation()->mutable_analysis()->set_artifact(kNoBlob);
  }
}

// Kept alive by the call and by the scheduler. Reads the next message once the scheduler has taken
// the previous one, so that a worker can't flood it.
class AttachReactor final
    : public grpc::ServerBidiReactor<worker::v1::FromWorker, worker::v1::ToWorker>,
      public schedule::WorkerStream,
      public rpc::LiveStream,
      public std::enable_shared_from_this<AttachReactor> {
 public:
  // Returns the reactor of a new call; `context` outlives the call.
  static AttachReactor* Start(WorkerBackend* backend, grpc::CallbackServerContext* context);

  void Send(const worker::v1::ToWorker& message) override;
  void Close(const absl::Status& why) override;
  void Stop() override;
  void CheckPace(absl::Duration now) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AttachReactor(WorkerBackend* backend, grpc::CallbackServerContext* context);

  absl::Status FindUser();
  void Open();
  void ReadNext();
  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the scheduler, once, that there will be no more messages.
  void Leave();
  // Finishes with `status` after the write in progress, which has a while to end.
  void End(const absl::Status& status);
  void EndLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abort();

  WorkerBackend* const backend_;
  grpc::CallbackServerContext* const context_;
  std::string user_;                          // worker's user; empty on this machine
  std::shared_ptr<AttachReactor> self_;       // until OnDone
  schedule::Scheduler::Session session_ = 0;  // used on the scheduler's thread only
  worker::v1::FromWorker incoming_;           // owned by the scheduler between a read and ReadNext
  rpc::Pace pace_;

  Mutex mutex_;
  std::deque<worker::v1::ToWorker> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  size_t outgoing_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more is read or written
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = true;  // the scheduler doesn't have the stream
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

AttachReactor::AttachReactor(WorkerBackend* backend, grpc::CallbackServerContext* context)
    : backend_(backend), context_(context), pace_(backend->pace) {}

AttachReactor* AttachReactor::Start(WorkerBackend* backend, grpc::CallbackServerContext* context) {
  // The constructor is private, so that every reactor owns itself.
  std::shared_ptr<AttachReactor> reactor(new AttachReactor(backend, context));
  reactor->self_ = reactor;
  absl::Status accepted = backend->streams.Add(reactor.get(), context);
  if (accepted.ok()) accepted = reactor->FindUser();
  if (accepted.ok()) {
    reactor->Open();
  } else {
    reactor->End(accepted);
  }
  return reactor.get();
}

absl::Status AttachReactor::FindUser() {
  ASSIGN_OR_RETURN(user_, backend_->find_user(*context_));
  return absl::OkStatus();
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
  if (incoming_.has_hello()) schedule::SetUser(user_, incoming_.mutable_hello());
  if (!user_.empty()) DropForeignBlobs(backend_->pins, &incoming_);
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
  if (outgoing_bytes_ > lookup::kMaxUnsentBytes) {
    EndLocked(absl::ResourceExhaustedError(absl::StrCat(
        "the worker doesn't read its stream: ", outgoing_bytes_, " bytes are waiting")));
    return;
  }
  outgoing_.push_back(message);
  if (outgoing_.size() == 1) WriteFirst();
}

void AttachReactor::WriteFirst() {
  pace_.Write(outgoing_.front().ByteSizeLong(), MonotonicNow());
  // gRPC sends what has the hint together with the last message of the queue. A stream's first
  // message must have none, because it goes with the headers; it is alone in the queue.
  grpc::WriteOptions options;
  if (outgoing_.size() > 1) options.set_buffer_hint();
  StartWrite(&outgoing_.front(), options);
}

void AttachReactor::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  pace_.Written(MonotonicNow());
  outgoing_bytes_ -= outgoing_.front().ByteSizeLong();
  outgoing_.pop_front();
  if (!ok || ending_) outgoing_.clear();
  if (ending_) {
    Finish(lookup::ToGrpc(end_));
  } else if (!outgoing_.empty()) {
    WriteFirst();
  }
  // If the write failed, a read fails, too, and ends the stream.
}

void AttachReactor::Close(const absl::Status& why) { End(why); }

void AttachReactor::Stop() { End(rpc::ServerEnds()); }

void AttachReactor::CheckPace(absl::Duration now) {
  if (pace_.TooSlow(now)) rpc::EndNow(context_, rpc::TooSlow(pace_));
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
    Finish(lookup::ToGrpc(end_));
    return;
  }
  backend_->pool->PostAfter(kWriteTimeout, [self = shared_from_this()] { self->Abort(); });
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

}  // namespace

grpc::ServerBidiReactor<worker::v1::FromWorker, worker::v1::ToWorker>* StartAttach(
    WorkerBackend* backend, grpc::CallbackServerContext* context) {
  return AttachReactor::Start(backend, context);
}

}  // namespace ablate::service
