// Streams whose messages are made or taken on the work pool: PullStream writes as fast as the
// client reads, PushStream takes a client's messages one by one.
#ifndef ABLATE_SERVER_RPC_STREAMS_H_
#define ABLATE_SERVER_RPC_STREAMS_H_

#include <atomic>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/rpc/call.h"
#include "server/rpc/live_streams.h"

namespace ablate::rpc {

// A server stream that is made in batches. At any time either a task of it is on the pool or one
// write is in progress, so derived classes need no lock. Create it with new; it deletes itself when
// the call is done.
template <class Response>
class PullStream : public grpc::ServerWriteReactor<Response>, public LiveStream {
 public:
  explicit PullStream(const StreamCall& call) : call_(call), pace_(call.pace) {}

  // Starts the work; the method handler returns the result.
  grpc::ServerWriteReactor<Response>* Begin() {
    absl::Status accepted = Check();
    if (accepted.ok()) accepted = call_.streams->Add(this, call_.context);
    if (accepted.ok()) accepted = call_.pool->TryPost([this] { Step(); }, call_.user);
    if (!accepted.ok()) this->Finish(lookup::ToGrpc(accepted));
    return this;
  }

  void OnWriteDone(bool ok) final {
    pace_.Written(MonotonicNow());
    if (!ok) {
      this->Finish(grpc::Status::CANCELLED);
      return;
    }
    batch_.pop_front();
    WriteNext();
  }
  void OnCancel() final { cancelled_ = true; }
  void OnDone() final {
    call_.streams->Remove(this);
    delete this;
  }
  void Stop() final { stopped_ = true; }
  void CheckPace(absl::Duration now) final {
    if (pace_.TooSlow(now)) EndNow(call_.context, TooSlow(pace_));
  }

 protected:
  ~PullStream() override = default;

  // Checks the request before it may wait for a thread. Must use neither the store nor much time. A
  // request refused here is freed at once, however large it is.
  virtual absl::Status Check() const { return absl::OkStatus(); }

  // Appends messages, about kBatchBytes or what takes some 20 ms to make; may append none. Returns
  // false if there will be no more. Runs on the pool.
  virtual absl::StatusOr<bool> Fill(std::deque<Response>* batch) = 0;

  // Returns true if nobody wants the rest; a long Fill asks now and then.
  bool ended() const { return cancelled_ || stopped_; }

 private:
  void Step() {
    absl::StatusOr<bool> more = Fill(&batch_);
    if (stopped_) more = ServerEnds();
    if (cancelled_) more = lookup::CallCancelled();
    if (!more.ok()) {
      this->Finish(lookup::ToGrpc(more.status()));
      return;
    }
    more_ = *more;
    WriteNext();
  }

  void WriteNext() {
    if (!batch_.empty()) {
      pace_.Write(batch_.front().ByteSizeLong(), MonotonicNow());
      this->StartWrite(&batch_.front());
    } else if (more_) {
      call_.pool->Post([this] { Step(); }, call_.user);
    } else {
      this->Finish(grpc::Status::OK);
    }
  }

  const StreamCall call_;
  Pace pace_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> stopped_ = false;
  std::deque<Response> batch_;
  bool more_ = true;
};

// A client stream. At any time either a task of it is on the pool or one read is in progress, so
// derived classes need no lock. Clients and workers send at most kChunkBytes in a message. Create
// it with new; it deletes itself when the call is done.
template <class Request>
class PushStream : public grpc::ServerReadReactor<Request>, public LiveStream {
 public:
  explicit PushStream(const StreamCall& call)
      : call_(call), pace_(call.pace, lookup::kChunkBytes) {}

  // Starts reading; the method handler returns the result.
  grpc::ServerReadReactor<Request>* Begin() {
    if (const absl::Status accepted = call_.streams->Add(this, call_.context); accepted.ok()) {
      ReadNext();
    } else {
      this->Finish(lookup::ToGrpc(accepted));
    }
    return this;
  }

  void OnReadDone(bool ok) final {
    pace_.HasRead(ok ? request_.ByteSizeLong() : 0, MonotonicNow());
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      if (!end_.ok()) return;  // Interrupt has finished the call
    }
    call_.pool->Post([this, ok] { ok ? TakeOne() : End(); }, call_.user);
  }
  void OnDone() final {
    call_.streams->Remove(this);
    delete this;
  }
  void Stop() final { Interrupt(ServerEnds()); }
  void CheckPace(absl::Duration now) final {
    if (!pace_.TooSlow(now)) return;
    Interrupt(absl::DeadlineExceededError(
        absl::StrCat("the client sends too slowly; expected ", pace_.Terms())));
  }

 protected:
  ~PushStream() override = default;

  // Takes one message, on the pool. Returns false if the client need not send the rest.
  virtual absl::StatusOr<bool> Take(const Request& request) = 0;
  // Fills in the response, on the pool, once everything was taken or Take returned false.
  virtual absl::Status Complete() = 0;

  // Returns true if the call must end; long work asks.
  bool ended() {
    MutexLock lock(&mutex_);
    return !end_.ok() || call_.context->IsCancelled();
  }

 private:
  void TakeOne() {
    absl::StatusOr<bool> more = Take(request_);
    // Work that asked ended() doesn't know why.
    if (absl::IsCancelled(more.status()) && !asked_end().ok()) more = asked_end();
    if (!more.ok()) {
      this->Finish(lookup::ToGrpc(more.status()));
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
        pace_.Read(MonotonicNow());
        this->StartRead(&request_);
      }
    }
    if (!end.ok()) this->Finish(lookup::ToGrpc(end));
  }

  // Returns why somebody asked the call to end; OK if nobody did.
  absl::Status asked_end() {
    MutexLock lock(&mutex_);
    return end_;
  }

  // Ends the reading. A client that is gone looks like one that has sent everything.
  void End() {
    absl::Status end = asked_end();
    if (end.ok() && call_.context->IsCancelled()) end = absl::CancelledError("the client is gone");
    if (end.ok()) end = Complete();
    this->Finish(lookup::ToGrpc(end));
  }

  // Ends the call now if it waits for the client, otherwise after the message in work.
  void Interrupt(const absl::Status& why) {
    {
      MutexLock lock(&mutex_);
      if (!end_.ok()) return;
      end_ = why;
      if (!reading_) return;
    }
    this->Finish(lookup::ToGrpc(why));
  }

  const StreamCall call_;
  Pace pace_;
  Request request_;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // reason to stop; OK if nobody asked
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_STREAMS_H_
