// Implements the stream with gRPC's callback interface: one read and at most one write in flight.
#include "server/worker/attach_stream.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <utility>

#include "ablate/worker/v1/worker.grpc.pb.h"
#include "base/mutex.h"
#include "server/worker/channel.h"

namespace ablate::worker {
namespace {

class GrpcStream : public AttachStream,
                   private grpc::ClientBidiReactor<v1::FromWorker, v1::ToWorker> {
 public:
  GrpcStream(const join::ServerAddress& server, v1::WorkerChannel::Stub* stub, v1::Hello hello,
             AttachCallbacks callbacks)
      : callbacks_(std::move(callbacks)) {
    join::AddMetadata(server, &context_);
    stub->async()->Attach(&context_, this);
    // Writes start on any thread; the hold keeps the call open for them until reading fails.
    AddHold();
    *outgoing_.emplace_back().mutable_hello() = std::move(hello);
    StartWrite(&outgoing_.front());
    StartRead(&received_);
    StartCall();
  }

  ~GrpcStream() override {
    context_.TryCancel();
    MutexLock lock(&mutex_);
    while (!done_) changed_.Wait(&mutex_);
  }

  void Send(v1::FromWorker message) override {
    MutexLock lock(&mutex_);
    if (broken_) return;
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  bool Unsent() const override {
    MutexLock lock(&mutex_);
    return !broken_ && !outgoing_.empty();
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      callbacks_.received(received_);
      received_.Clear();
      StartRead(&received_);
      return;
    }
    {
      MutexLock lock(&mutex_);
      broken_ = true;
    }
    RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      outgoing_.pop_front();
      if (ok && !broken_ && !outgoing_.empty()) StartWrite(&outgoing_.front());
      if (!outgoing_.empty()) return;
    }
    callbacks_.sent();
  }

  void OnDone(const grpc::Status& status) override {
    callbacks_.ended(FromGrpc(status));
    MutexLock lock(&mutex_);
    done_ = true;
    changed_.SignalAll();
  }

  const AttachCallbacks callbacks_;
  grpc::ClientContext context_;
  v1::ToWorker received_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<v1::FromWorker> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

class GrpcClient : public AttachClient {
 public:
  explicit GrpcClient(const join::ServerAddress& server)
      : server_(server), stub_(v1::WorkerChannel::NewStub(OpenChannel(server))) {}

  std::unique_ptr<AttachStream> Open(v1::Hello hello, AttachCallbacks callbacks) override {
    return std::make_unique<GrpcStream>(server_, stub_.get(), std::move(hello),
                                        std::move(callbacks));
  }

 private:
  const join::ServerAddress server_;
  const std::unique_ptr<v1::WorkerChannel::Stub> stub_;
};

}  // namespace

std::unique_ptr<AttachClient> AttachClient::Make(const join::ServerAddress& server) {
  return std::make_unique<GrpcClient>(server);
}

}  // namespace ablate::worker
