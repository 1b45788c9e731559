// A server stream that is made in batches on the pool and written as fast as the client takes it.
#ifndef ABLATE_SERVER_SERVICE_PULL_STREAM_H_
#define ABLATE_SERVER_SERVICE_PULL_STREAM_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "server/schedule/clock.h"
#include "server/service/call.h"
#include "server/service/errors.h"
#include "server/service/live_streams.h"

namespace ablate::service {

// At any time either a task of it is on the pool or one write is in progress, so derived classes
// need no lock. Created with new; deletes itself when the call is done.
template <class Response>
class PullStream : public grpc::ServerWriteReactor<Response>, public LiveStream {
 public:
  explicit PullStream(const StreamCall& call) : call_(call), pace_(call.pace) {}

  // Starts the work; for the method handler to return.
  grpc::ServerWriteReactor<Response>* Begin() {
    absl::Status accepted = Check();
    if (accepted.ok()) accepted = call_.streams->Add(this);
    if (accepted.ok() && !call_.pool->TryPost([this] { Step(); })) accepted = TooBusy();
    if (!accepted.ok()) this->Finish(ToGrpc(accepted));
    return this;
  }

  void OnWriteDone(bool ok) final {
    pace_.Written(schedule::SteadyClock().Now());
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
  void Look(absl::Duration now) final {
    if (pace_.TooSlow(now)) EndNow(call_.context, TooSlow(pace_));
  }

 protected:
  ~PullStream() override = default;

  // Whether the request may wait for a thread at all: no store, no time. A request that is refused
  // here is gone at once, however large it is.
  virtual absl::Status Check() const { return absl::OkStatus(); }

  // Appends messages, about kBatchBytes or what can be made in some 20 ms; it may be none. False
  // when there will be no more. Runs on the pool.
  virtual absl::StatusOr<bool> Fill(std::deque<Response>* batch) = 0;

  // Whether nobody wants the rest: a long Fill looks now and then.
  bool ended() const { return cancelled_ || stopped_; }

 private:
  void Step() {
    absl::StatusOr<bool> more = Fill(&batch_);
    if (stopped_) more = ServerEnds();
    if (cancelled_) more = absl::CancelledError("the call was cancelled");
    if (!more.ok()) {
      this->Finish(ToGrpc(more.status()));
      return;
    }
    more_ = *more;
    WriteNext();
  }

  void WriteNext() {
    if (!batch_.empty()) {
      pace_.Write(batch_.front().ByteSizeLong(), schedule::SteadyClock().Now());
      this->StartWrite(&batch_.front());
    } else if (more_) {
      call_.pool->Post([this] { Step(); });
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

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PULL_STREAM_H_
