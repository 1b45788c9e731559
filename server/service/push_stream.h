// A client stream whose messages are taken one by one on the pool.
#ifndef ABLATE_SERVER_SERVICE_PUSH_STREAM_H_
#define ABLATE_SERVER_SERVICE_PUSH_STREAM_H_

#include <atomic>

#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/call.h"
#include "server/service/errors.h"
#include "server/service/live_streams.h"
#include "server/service/work_pool.h"

namespace ablate::service {

// At any time either a task of it is on the pool or one read is in progress, so derived classes
// need no lock. Created with new; deletes itself when the call is done.
template <class Request>
class PushStream : public grpc::ServerReadReactor<Request>, public LiveStream {
 public:
  PushStream(WorkPool* pool, LiveStreams* streams) : pool_(pool), streams_(streams) {}

  // Starts reading; for the method handler to return.
  grpc::ServerReadReactor<Request>* Begin() {
    if (const absl::Status accepted = streams_->Add(this); accepted.ok()) {
      this->StartRead(&request_);
    } else {
      this->Finish(ToGrpc(accepted));
    }
    return this;
  }

  void OnReadDone(bool ok) final {
    pool_->Post([this, ok] { ok ? TakeOne() : End(); });
  }
  void OnCancel() final { cancelled_ = true; }
  void OnDone() final {
    streams_->Remove(this);
    delete this;
  }
  void Stop() final { stopped_ = true; }

 protected:
  ~PushStream() override = default;

  // Takes one message, on the pool. False if the client need not send the rest.
  virtual absl::StatusOr<bool> Take(const Request& request) = 0;
  // Everything was taken, or Take returned false: fills in the response, on the pool.
  virtual absl::Status Complete() = 0;

 private:
  void TakeOne() {
    absl::StatusOr<bool> more = Take(request_);
    if (stopped_) more = ServerEnds();
    if (!more.ok()) {
      this->Finish(ToGrpc(more.status()));
    } else if (*more) {
      this->StartRead(&request_);
    } else {
      End();
    }
  }

  void End() { this->Finish(cancelled_ ? grpc::Status::CANCELLED : ToGrpc(Complete())); }

  WorkPool* const pool_;
  LiveStreams* const streams_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> stopped_ = false;
  Request request_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PUSH_STREAM_H_
