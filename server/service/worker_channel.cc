// The WorkerChannel service: the side of the server that workers see.
#include "server/service/worker_channel.h"

#include "ablate/worker/v1/worker.grpc.pb.h"
#include "server/service/errors.h"
#include "server/service/read_blob.h"
#include "server/service/write_blob.h"

namespace ablate::service {
namespace {

// An analysis has the right to its own blobs, a lease to all.
absl::Status CheckRight(const WorkerBackend& backend, const worker::v1::ReadBlobRequest& request) {
  const absl::Status own = backend.scheduler->analyses().MayRead(request.lease(), request.sha256());
  return absl::IsNotFound(own) ? CheckLease(backend.store, request.lease()) : own;
}

absl::StatusOr<BlobReader> Open(const WorkerBackend& backend,
                                const worker::v1::ReadBlobRequest& request) {
  if (const absl::Status sha = CheckSha256(request.sha256()); !sha.ok()) return sha;
  if (const absl::Status right = CheckRight(backend, request); !right.ok()) return right;
  return BlobReader::Open(backend.store, request.sha256(), 0);
}

class WorkerChannelService final : public worker::v1::WorkerChannel::CallbackService {
 public:
  explicit WorkerChannelService(WorkerBackend* backend) : backend_(backend) {}

  grpc::ServerBidiReactor<worker::v1::FromWorker, worker::v1::ToWorker>* Attach(
      grpc::CallbackServerContext* context) override {
    return AttachReactor::Start(backend_, context);
  }

  grpc::ServerWriteReactor<worker::v1::BlobChunk>* ReadBlob(
      grpc::CallbackServerContext* context, const worker::v1::ReadBlobRequest* request) override {
    auto* reactor = new ReadBlobReactor<worker::v1::BlobChunk>(
        Transfer(context), [this, request] { return Open(*backend_, *request); });
    return reactor->Begin();
  }

  grpc::ServerReadReactor<worker::v1::WriteBlobRequest>* WriteBlob(
      grpc::CallbackServerContext* context, worker::v1::WriteBlobResponse* response) override {
    auto* reactor =
        new WriteBlobReactor(Transfer(context), backend_->store, &backend_->pins, response);
    return reactor->Begin();
  }

 private:
  StreamCall Transfer(grpc::CallbackServerContext* context) const {
    return {context, backend_->pool, &backend_->transfers, backend_->pace};
  }

  WorkerBackend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerChannelService(WorkerBackend* backend) {
  return std::make_unique<WorkerChannelService>(backend);
}

}  // namespace ablate::service
