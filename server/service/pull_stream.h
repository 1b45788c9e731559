// A server stream that is made in batches on the pool and written as fast as the client takes it.
#ifndef ABLATE_SERVER_SERVICE_PULL_STREAM_H_
#define ABLATE_SERVER_SERVICE_PULL_STREAM_H_

#include <atomic>
#include <deque>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/call.h"
#include "server/service/errors.h"
#include "server/service/live_streams.h"
#include "server/service/work_pool.h"

namespace ablate::service {

// At any time either a task of it is on the pool or one write is in progress, so derived classes
// need no lock. Created with new; deletes itself when the call is done.
template <class Response>
class PullStream : public grpc::ServerWriteReactor<Response>, public LiveStream {
 public:
  PullStream(WorkPool* pool, LiveStreams* streams) : pool_(pool), streams_(streams) {}

  // Starts the work; for the method handler to return.
  grpc::ServerWriteReactor<Response>* Begin() {
    absl::Status accepted = streams_->Add(this);
    if (accepted.ok() && !pool_->TryPost([this] { Step(); })) accepted = TooBusy();
    if (!accepted.ok()) this->Finish(ToGrpc(accepted));
    return this;
  }

  void OnWriteDone(bool ok) final {
    if (!ok) {
      this->Finish(grpc::Status::CANCELLED);
      return;
    }
    batch_.pop_front();
    WriteNext();
  }
  void OnCancel() final { cancelled_ = true; }
  void OnDone() final {
    streams_->Remove(this);
    delete this;
  }
  void Stop() final { stopped_ = true; }

 protected:
  ~PullStream() override = default;

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
      this->StartWrite(&batch_.front());
    } else if (more_) {
      pool_->Post([this] { Step(); });
    } else {
      this->Finish(grpc::Status::OK);
    }
  }

  WorkPool* const pool_;
  LiveStreams* const streams_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> stopped_ = false;
  std::deque<Response> batch_;
  bool more_ = true;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PULL_STREAM_H_
