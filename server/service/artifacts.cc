#include "ablate/v1/artifact.pb.h"
#include "base/status_macros.h"
#include "server/config/program.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr char kOutput[] = "output";  // kind of the files that a program has kept

absl::Status ListArtifacts(const Backend& backend, const lookup::View& view,
                           const v1::ListArtifactsRequest& request,
                           v1::ListArtifactsResponse* response) {
  ASSIGN_OR_RETURN(const auto run, lookup::FindRun(view, request.run(), "run"));
  ASSIGN_OR_RETURN(const auto artifacts, backend.store->ListArtifacts(run));
  if (artifacts.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const storage::RunRecord record, backend.store->GetRun(run));
  for (const storage::ArtifactRecord& artifact : artifacts) {
    v1::Artifact* message = response->add_artifacts();
    *message = ToProto(artifact);
    if (spec::IsProgramTrainer(record.trainer)) message->set_kind(kOutput);
  }
  return absl::OkStatus();
}

absl::StatusOr<rpc::BlobReader> OpenArtifact(const Backend& backend,
                                             const grpc::ServerContextBase& context,
                                             const v1::ReadArtifactRequest& request) {
  ASSIGN_OR_RETURN(const auto view, backend.FindView(context));
  ASSIGN_OR_RETURN(const auto name, lookup::ParseCheckpointName(request.name(), "name"));
  ASSIGN_OR_RETURN(const auto run, lookup::FindRun(view, name.run, "name"));
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(backend.store, run, name.step));
  return rpc::BlobReader::Open(backend.store, checkpoint.blob, request.offset());
}

}  // namespace

std::unique_ptr<grpc::Service> MakeArtifactsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Artifacts", backend);
  methods->Answer(ListArtifacts);
  methods->Download<v1::ArtifactChunk>(OpenArtifact);
  return methods;
}

}  // namespace ablate::service
