#include "ablate/v1/artifact.grpc.pb.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

absl::Status List(const Backend& backend, const lookup::View& view,
                  const v1::ListArtifactsRequest& request, v1::ListArtifactsResponse* response) {
  const auto run = lookup::FindRun(view, request.run(), "run");
  if (!run.ok()) return run.status();
  const auto artifacts = backend.store->ListArtifacts(*run);
  if (!artifacts.ok()) return artifacts.status();
  for (const storage::ArtifactRecord& artifact : *artifacts) {
    *response->add_artifacts() = ToProto(artifact);
  }
  return absl::OkStatus();
}

absl::StatusOr<rpc::BlobReader> Open(const Backend& backend, const grpc::ServerContextBase& context,
                                     const v1::ReadArtifactRequest& request) {
  const auto view = backend.FindView(context);
  if (!view.ok()) return view.status();
  const auto name = lookup::ParseCheckpointName(request.name(), "name");
  if (!name.ok()) return name.status();
  const auto run = lookup::FindRun(*view, name->run, "name");
  if (!run.ok()) return run.status();
  const auto checkpoint = lookup::FindCheckpoint(backend.store, *run, name->step);
  if (!checkpoint.ok()) return checkpoint.status();
  return rpc::BlobReader::Open(backend.store, checkpoint->blob, request.offset());
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
