// The side of the server that workers see.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/worker/v1/worker.grpc.pb.h"
#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/errors.h"
#include "server/rpc/limits.h"
#include "server/rpc/streams.h"
#include "server/service/services.h"
#include "storage/store.h"

namespace ablate::service {
namespace {

// NOT_FOUND unless the lease is alive: only who trains may read and write.
absl::Status CheckLease(storage::Store* store, const std::string& lease) {
  const absl::StatusOr<bool> exists = store->LeaseExists(lease);
  if (!exists.ok()) return exists.status();
  if (*exists) return absl::OkStatus();
  return rpc::WithReason(
      absl::NotFoundError(absl::StrCat("lease ", reflect::Quoted(lease), " has ended")),
      "LEASE_NOT_FOUND");
}

// The same of a computation, which publishes its state and its arrays.
absl::Status CheckWriter(const WorkerBackend& backend, const std::string& grant) {
  if (backend.scheduler->analyses().MayWrite(grant)) return absl::OkStatus();
  return CheckLease(backend.store, grant);
}

// A worker publishes a checkpoint, a resume state, or what a computation leaves.
class WriteBlobReactor final : public rpc::PushStream<worker::v1::WriteBlobRequest> {
 public:
  // Everything outlives the call.
  WriteBlobReactor(const rpc::StreamCall& call, WorkerBackend* backend,
                   worker::v1::WriteBlobResponse* response);

 private:
  absl::StatusOr<bool> Take(const worker::v1::WriteBlobRequest& request) override;
  absl::Status Complete() override;
  absl::StatusOr<bool> Open(const worker::v1::WriteBlobRequest& request);
  // Lets go of what leases left that have no runs any more, and computations whose end is stored.
  absl::Status Prune();

  WorkerBackend* const backend_;
  worker::v1::WriteBlobResponse* const response_;
  bool open_ = false;
  std::string lease_;
  rpc::BlobWriter writer_;
};

WriteBlobReactor::WriteBlobReactor(const rpc::StreamCall& call, WorkerBackend* backend,
                                   worker::v1::WriteBlobResponse* response)
    : PushStream(call), backend_(backend), response_(response) {}

absl::StatusOr<bool> WriteBlobReactor::Take(const worker::v1::WriteBlobRequest& request) {
  if (!open_) {
    const absl::StatusOr<bool> wanted = Open(request);
    if (!wanted.ok() || !*wanted) return wanted;
  }
  const absl::Status appended = writer_.Append(request.data(), rpc::kMaxBlobBytes);
  if (!appended.ok()) return appended;
  return true;
}

absl::StatusOr<bool> WriteBlobReactor::Open(const worker::v1::WriteBlobRequest& request) {
  open_ = true;
  if (const absl::Status sha = rpc::CheckSha256(request.sha256()); !sha.ok()) return sha;
  if (const absl::Status right = CheckWriter(*backend_, request.lease()); !right.ok()) return right;
  lease_ = request.lease();
  auto writer = rpc::BlobWriter::Open(backend_->store, request.sha256());
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  return writer_.wanted();
}

absl::Status WriteBlobReactor::Complete() {
  if (!open_) return rpc::CheckSha256("");
  auto pin = writer_.Publish();
  if (!pin.ok()) return pin.status();
  response_->set_sha256((*pin)->sha256());
  response_->set_bytes((*pin)->size());
  backend_->pins.Hold(lease_, *std::move(pin));
  return Prune();
}

absl::Status WriteBlobReactor::Prune() {
  const std::vector<std::string> holding = backend_->pins.Leases();
  if (holding.size() == 1) return absl::OkStatus();  // this one's
  const auto leases = backend_->store->ListLeases();
  if (!leases.ok()) return leases.status();
  const std::vector<std::string> computing = backend_->scheduler->analyses().Computations();
  std::set<std::string> alive(computing.begin(), computing.end());
  // Asked for after those that the worker has: what it leaves is held until it is stored.
  for (std::string& request : backend_->analyses->Requests()) alive.insert(std::move(request));
  for (const storage::LeaseRecord& lease : *leases) alive.insert(lease.lease);
  for (const std::string& lease : holding) {
    if (alive.count(lease) == 0) backend_->pins.DropLease(lease);
  }
  return absl::OkStatus();
}

// An analysis has the right to its own blobs, a lease to all.
absl::Status CheckRight(const WorkerBackend& backend, const worker::v1::ReadBlobRequest& request) {
  const absl::Status own = backend.scheduler->analyses().MayRead(request.lease(), request.sha256());
  return absl::IsNotFound(own) ? CheckLease(backend.store, request.lease()) : own;
}

absl::StatusOr<rpc::BlobReader> Open(const WorkerBackend& backend,
                                     const worker::v1::ReadBlobRequest& request) {
  if (const absl::Status sha = rpc::CheckSha256(request.sha256()); !sha.ok()) return sha;
  if (const absl::Status right = CheckRight(backend, request); !right.ok()) return right;
  return rpc::BlobReader::Open(backend.store, request.sha256(), 0);
}

class WorkerChannelService final : public worker::v1::WorkerChannel::CallbackService {
 public:
  explicit WorkerChannelService(WorkerBackend* backend) : backend_(backend) {}

  grpc::ServerBidiReactor<worker::v1::FromWorker, worker::v1::ToWorker>* Attach(
      grpc::CallbackServerContext* context) override {
    return StartAttach(backend_, context);
  }

  grpc::ServerWriteReactor<worker::v1::BlobChunk>* ReadBlob(
      grpc::CallbackServerContext* context, const worker::v1::ReadBlobRequest* request) override {
    auto* reactor = new rpc::ReadBlobReactor<worker::v1::BlobChunk>(
        Transfer(context), [this, request] { return Open(*backend_, *request); });
    return reactor->Begin();
  }

  grpc::ServerReadReactor<worker::v1::WriteBlobRequest>* WriteBlob(
      grpc::CallbackServerContext* context, worker::v1::WriteBlobResponse* response) override {
    auto* reactor = new WriteBlobReactor(Transfer(context), backend_, response);
    return reactor->Begin();
  }

 private:
  rpc::StreamCall Transfer(grpc::CallbackServerContext* context) const {
    return {context, backend_->pool, &backend_->transfers, backend_->pace};
  }

  WorkerBackend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerChannelService(WorkerBackend* backend) {
  return std::make_unique<WorkerChannelService>(backend);
}

}  // namespace ablate::service
