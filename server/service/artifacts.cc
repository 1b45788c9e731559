#include "ablate/v1/artifact.grpc.pb.h"
#include "base/status_macros.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

absl::Status List(const Backend& backend, const lookup::View& view,
                  const v1::ListArtifactsRequest& request, v1::ListArtifactsResponse* response) {
  ASSIGN_OR_RETURN(const auto run, lookup::FindRun(view, request.run(), "run"));
  ASSIGN_OR_RETURN(const auto artifacts, backend.store->ListArtifacts(run));
  for (const storage::ArtifactRecord& artifact : artifacts) {
    *response->add_artifacts() = ToProto(artifact);
  }
  return absl::OkStatus();
}

absl::StatusOr<rpc::BlobReader> Open(const Backend& backend, const grpc::ServerContextBase& context,
                                     const v1::ReadArtifactRequest& request) {
  ASSIGN_OR_RETURN(const auto view, backend.FindView(context));
  ASSIGN_OR_RETURN(const auto name, lookup::ParseCheckpointName(request.name(), "name"));
  ASSIGN_OR_RETURN(const auto run, lookup::FindRun(view, name.run, "name"));
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(backend.store, run, name.step));
  return rpc::BlobReader::Open(backend.store, checkpoint.blob, request.offset());
}

class ArtifactsService final : public v1::Artifacts::CallbackService {
 public:
  explicit ArtifactsService(Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ListArtifacts(grpc::CallbackServerContext* context,
                                          const v1::ListArtifactsRequest* request,
                                          v1::ListArtifactsResponse* response) override {
    return backend_->Answer(context, List, request, response);
  }

  grpc::ServerWriteReactor<v1::ArtifactChunk>* ReadArtifact(
      grpc::CallbackServerContext* context, const v1::ReadArtifactRequest* request) override {
    auto* reactor = new rpc::ReadBlobReactor<v1::ArtifactChunk>(
        backend_->Stream(context, &backend_->downloads),
        [this, context, request] { return Open(*backend_, *context, *request); });
    return reactor->Begin();
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeArtifactsService(Backend* backend) {
  return std::make_unique<ArtifactsService>(backend);
}

}  // namespace ablate::service
