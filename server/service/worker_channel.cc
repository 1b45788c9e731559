// The server's service for workers.
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
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/streams.h"
#include "server/schedule/worker_names.h"
#include "server/service/services.h"
#include "storage/store.h"

namespace ablate::service {
namespace {

// Limit of one lease's written bytes that no durable event names: a state has a few copies of the
// parameters, and a run publishes one blob at a time.
constexpr uint64_t kUnnamedBytes = uint64_t{256} << 20;
constexpr uint64_t kUnnamedBytesOfParameter = 64;

absl::Status LeaseHasEnded(const std::string& lease) {
  return lookup::WithReason(
      absl::NotFoundError(absl::StrCat("lease ", reflect::Quoted(lease), " has ended")),
      "LEASE_NOT_FOUND");
}

// Returns the lease's rights. NOT_FOUND unless the lease is alive and a worker of this user has it:
// only its worker may read and write.
absl::StatusOr<storage::LeaseRights> RightsOf(const WorkerBackend& backend,
                                              const std::string& lease, const std::string& user) {
  ASSIGN_OR_RETURN(auto rights, backend.store->FindLeaseRights(lease));
  if (!rights.has_value() || !schedule::IsOfUser(rights->worker, user)) {
    return LeaseHasEnded(lease);
  }
  return *std::move(rights);
}

// Returns the bytes that may be written under a lease, or for a computation, before they are named.
absl::StatusOr<uint64_t> BudgetOf(const WorkerBackend& backend, const std::string& grant,
                                  const std::string& user) {
  if (backend.scheduler->analyses().MayWrite(grant, user)) return lookup::kMaxBlobBytes;
  ASSIGN_OR_RETURN(const auto rights, RightsOf(backend, grant, user));
  return kUnnamedBytes + kUnnamedBytesOfParameter * rights.parameters;
}

// A worker publishes a checkpoint, a resume state, or a computation's output.
class WriteBlobReactor final : public rpc::PushStream<worker::v1::WriteBlobRequest> {
 public:
  // All arguments outlive the call.
  WriteBlobReactor(const rpc::StreamCall& call, WorkerBackend* backend,
                   worker::v1::WriteBlobResponse* response);
  ~WriteBlobReactor() override { backend_->pins.End(lease_, counted_); }

 private:
  absl::StatusOr<bool> Take(const worker::v1::WriteBlobRequest& request) override;
  absl::Status Complete() override;
  absl::StatusOr<bool> Open(const worker::v1::WriteBlobRequest& request);
  // Unpins the blobs of leases without runs, and of computations whose end is stored.
  absl::Status Prune();

  WorkerBackend* const backend_;
  grpc::CallbackServerContext* const context_;
  worker::v1::WriteBlobResponse* const response_;
  bool open_ = false;
  std::string lease_;
  uint64_t budget_ = 0;   // limit of the lease's unnamed bytes
  uint64_t counted_ = 0;  // bytes counted for this blob
  rpc::BlobWriter writer_;
};

WriteBlobReactor::WriteBlobReactor(const rpc::StreamCall& call, WorkerBackend* backend,
                                   worker::v1::WriteBlobResponse* response)
    : PushStream(call), backend_(backend), context_(call.context), response_(response) {}

absl::StatusOr<bool> WriteBlobReactor::Take(const worker::v1::WriteBlobRequest& request) {
  if (!open_) {
    const absl::StatusOr<bool> wanted = Open(request);
    if (!wanted.ok() || !*wanted) return wanted;
  }
  absl::Status taken = backend_->pins.Begin(lease_, request.data().size(), budget_);
  if (!taken.ok()) return taken;
  counted_ += request.data().size();
  taken = writer_.Append(request.data(), lookup::kMaxBlobBytes);
  if (!taken.ok()) return taken;
  return true;
}

absl::StatusOr<bool> WriteBlobReactor::Open(const worker::v1::WriteBlobRequest& request) {
  open_ = true;
  RETURN_IF_ERROR(lookup::CheckSha256(request.sha256()));
  ASSIGN_OR_RETURN(const auto user, backend_->find_user(*context_));
  ASSIGN_OR_RETURN(const auto budget, BudgetOf(*backend_, request.lease(), user));
  lease_ = request.lease();
  budget_ = budget;
  // A worker elsewhere that knows a hash must not learn if such bytes exist.
  ASSIGN_OR_RETURN(writer_, user.empty()
                                ? rpc::BlobWriter::Open(backend_->store, request.sha256())
                                : rpc::BlobWriter::Replace(backend_->store, request.sha256()));
  return writer_.wanted();
}

absl::Status WriteBlobReactor::Complete() {
  if (!open_) return lookup::CheckSha256("");
  ASSIGN_OR_RETURN(auto pin, writer_.Publish());
  response_->set_sha256(pin->sha256());
  response_->set_bytes(pin->size());
  backend_->pins.Hold(lease_, std::move(pin));
  backend_->pins.End(lease_, std::exchange(counted_, 0));
  return Prune();
}

absl::Status WriteBlobReactor::Prune() {
  const std::vector<std::string> holding = backend_->pins.Leases();
  if (holding.size() == 1) return absl::OkStatus();  // this one's
  ASSIGN_OR_RETURN(const auto leases, backend_->store->ListLeases());
  const std::vector<std::string> computing = backend_->scheduler->analyses().Computations();
  std::set<std::string> alive(computing.begin(), computing.end());
  // Read after those that the worker has: a result is pinned until it is stored.
  for (std::string& request : backend_->analyses->Requests()) alive.insert(std::move(request));
  for (const storage::LeaseRecord& lease : leases) alive.insert(lease.lease);
  for (const std::string& lease : holding) {
    if (alive.count(lease) == 0) backend_->pins.DropLease(lease);
  }
  return absl::OkStatus();
}

// Checks that a lease's grant, or an analysis, names the blob.
absl::Status CheckRead(const WorkerBackend& backend, const std::string& user,
                       const worker::v1::ReadBlobRequest& request) {
  const absl::Status own =
      backend.scheduler->analyses().MayRead(request.lease(), user, request.sha256());
  if (!absl::IsNotFound(own)) return own;
  ASSIGN_OR_RETURN(const auto rights, RightsOf(backend, request.lease(), user));
  if (rights.reads.count(request.sha256()) > 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("lease ", reflect::Quoted(request.lease()),
                                                  " may not read blob ", request.sha256(),
                                                  "; expected a blob of its grant"));
}

absl::StatusOr<rpc::BlobReader> Open(const WorkerBackend& backend,
                                     const grpc::ServerContextBase& context,
                                     const worker::v1::ReadBlobRequest& request) {
  RETURN_IF_ERROR(lookup::CheckSha256(request.sha256()));
  ASSIGN_OR_RETURN(const auto user, backend.find_user(context));
  RETURN_IF_ERROR(CheckRead(backend, user, request));
  return rpc::BlobReader::Open(backend.store, request.sha256(), 0);
}

absl::Status SyncPilots(const WorkerBackend& backend, const grpc::ServerContextBase& context,
                        const worker::v1::SyncPilotsRequest& request,
                        worker::v1::SyncPilotsResponse* response) {
  ASSIGN_OR_RETURN(const auto user, backend.find_user(context));
  ASSIGN_OR_RETURN(const auto queued, backend.store->CountQueuedLanes(request.device_kind()));
  ASSIGN_OR_RETURN(const auto shares, backend.store->GetShares());
  absl::StatusOr<worker::v1::SyncPilotsResponse> orders = rpc::ServerEnds();
  backend.scheduler->Run([&](schedule::Scheduler& scheduler) {
    orders = scheduler.SyncPilots(user, request, queued, shares);
  });
  ASSIGN_OR_RETURN(*response, std::move(orders));
  return absl::OkStatus();
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
        Transfer(context),
        [this, context, request] { return Open(*backend_, *context, *request); });
    return reactor->Begin();
  }

  grpc::ServerReadReactor<worker::v1::WriteBlobRequest>* WriteBlob(
      grpc::CallbackServerContext* context, worker::v1::WriteBlobResponse* response) override {
    auto* reactor = new WriteBlobReactor(Transfer(context), backend_, response);
    return reactor->Begin();
  }

  grpc::ServerUnaryReactor* SyncPilots(grpc::CallbackServerContext* context,
                                       const worker::v1::SyncPilotsRequest* request,
                                       worker::v1::SyncPilotsResponse* response) override {
    return rpc::Answer(backend_->pool, context, [this, context, request, response] {
      return service::SyncPilots(*backend_, *context, *request, response);
    });
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
