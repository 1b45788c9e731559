// A client stream whose messages are taken one by one on the pool.
#ifndef ABLATE_SERVER_SERVICE_PUSH_STREAM_H_
#define ABLATE_SERVER_SERVICE_PUSH_STREAM_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/errors.h"
#include "server/service/live_streams.h"
#include "server/service/work_pool.h"
#include "storage/mutex.h"

namespace ablate::service {

// What a stream of messages from a client runs on; pointers outlive the call.
struct PushCall {
  grpc::CallbackServerContext* context = nullptr;
  WorkPool* pool = nullptr;
  LiveStreams* streams = nullptr;
  // Without a message for so long, the call is ended: its place is others'.
  absl::Duration patience = absl::Minutes(1);
};

// At any time either a task of it is on the pool or one read is in progress, so derived classes
// need no lock. Created with new; deletes itself when the call is done.
template <class Request>
class PushStream : public grpc::ServerReadReactor<Request>, public LiveStream {
 public:
  explicit PushStream(const PushCall& call) : call_(call) {}

  // Starts reading; for the method handler to return.
  grpc::ServerReadReactor<Request>* Begin() {
    self_ = std::shared_ptr<PushStream>(this, [](PushStream* stream) { delete stream; });
    const std::weak_ptr<PushStream> self = self_;
    if (const absl::Status accepted = call_.streams->Add(this); accepted.ok()) {
      ReadNext();
      CheckLater(self, 1);
    } else {
      this->Finish(ToGrpc(accepted));
    }
    return this;
  }

  void OnReadDone(bool ok) final {
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      if (!end_.ok()) return;  // Interrupt has finished the call
    }
    call_.pool->Post([this, ok] { ok ? TakeOne() : End(); });
  }
  void OnDone() final {
    call_.streams->Remove(this);
    self_.reset();
  }
  void Stop() final { Interrupt(ServerEnds()); }

 protected:
  ~PushStream() override = default;

  // Takes one message, on the pool. False if the client need not send the rest.
  virtual absl::StatusOr<bool> Take(const Request& request) = 0;
  // Everything was taken, or Take returned false: fills in the response, on the pool.
  virtual absl::Status Complete() = 0;

 private:
  void TakeOne() {
    const absl::StatusOr<bool> more = Take(request_);
    if (!more.ok()) {
      this->Finish(ToGrpc(more.status()));
    } else if (*more) {
      ReadNext();
    } else {
      End();
    }
  }

  void ReadNext() {
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      end = end_;
      reading_ = end.ok();
      ++reads_;
      if (reading_) this->StartRead(&request_);
    }
    if (!end.ok()) this->Finish(ToGrpc(end));
  }

  // A client that is gone looks like one that has sent everything.
  void End() {
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      end = end_;
    }
    if (end.ok() && call_.context->IsCancelled()) end = absl::CancelledError("the client is gone");
    if (end.ok()) end = Complete();
    this->Finish(ToGrpc(end));
  }

  // Ends the call now if it waits for the client, otherwise after the message in work.
  void Interrupt(const absl::Status& why) {
    {
      MutexLock lock(&mutex_);
      if (!end_.ok()) return;
      end_ = why;
      if (!reading_) return;
    }
    this->Finish(ToGrpc(why));
  }

  void CheckLater(const std::weak_ptr<PushStream>& stream, uint64_t reads) {
    call_.pool->PostAfter(call_.patience, [stream, reads] {
      if (const auto self = stream.lock()) self->Check(stream, reads);
    });
  }

  // Whether the read that was in progress at the last look still is.
  void Check(const std::weak_ptr<PushStream>& stream, uint64_t then) {
    uint64_t reads = 0;
    bool idle = false;
    {
      MutexLock lock(&mutex_);
      reads = reads_;
      idle = reading_ && reads == then;
    }
    if (!idle) return CheckLater(stream, reads);
    Interrupt(absl::DeadlineExceededError(
        absl::StrCat("nothing was sent for ", absl::FormatDuration(call_.patience))));
  }

  const PushCall call_;
  std::shared_ptr<PushStream> self_;  // until OnDone; a check may hold it a little longer
  Request request_;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;  // begun so far
  absl::Status end_ ABSL_GUARDED_BY(mutex_);    // why to stop; OK while nobody asked
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PUSH_STREAM_H_
