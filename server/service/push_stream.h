// A client stream whose messages are taken one by one on the pool.
#ifndef ABLATE_SERVER_SERVICE_PUSH_STREAM_H_
#define ABLATE_SERVER_SERVICE_PUSH_STREAM_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "server/schedule/clock.h"
#include "server/service/call.h"
#include "server/service/errors.h"
#include "server/service/limits.h"
#include "server/service/live_streams.h"
#include "sync/mutex.h"

namespace ablate::service {

// At any time either a task of it is on the pool or one read is in progress, so derived classes
// need no lock. Clients and workers send kChunkBytes in a message at most. Created with new;
// deletes itself when the call is done.
template <class Request>
class PushStream : public grpc::ServerReadReactor<Request>, public LiveStream {
 public:
  explicit PushStream(const StreamCall& call) : call_(call), pace_(call.pace, kChunkBytes) {}

  // Starts reading; for the method handler to return.
  grpc::ServerReadReactor<Request>* Begin() {
    if (const absl::Status accepted = call_.streams->Add(this); accepted.ok()) {
      ReadNext();
    } else {
      this->Finish(ToGrpc(accepted));
    }
    return this;
  }

  void OnReadDone(bool ok) final {
    pace_.HasRead(ok ? request_.ByteSizeLong() : 0, schedule::SteadyClock().Now());
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      if (!end_.ok()) return;  // Interrupt has finished the call
    }
    call_.pool->Post([this, ok] { ok ? TakeOne() : End(); });
  }
  void OnDone() final {
    call_.streams->Remove(this);
    delete this;
  }
  void Stop() final { Interrupt(ServerEnds()); }
  void Look(absl::Duration now) final {
    if (!pace_.TooSlow(now)) return;
    Interrupt(absl::DeadlineExceededError(
        absl::StrCat("too little comes: the client must send ", pace_.Terms())));
  }

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
      if (reading_) {
        pace_.Read(schedule::SteadyClock().Now());
        this->StartRead(&request_);
      }
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

  const StreamCall call_;
  Pace pace_;
  Request request_;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why to stop; OK while nobody asked
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PUSH_STREAM_H_
