// ExportModel: sends a model as files that another program loads.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/model.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/analysis/subjects.h"
#include "server/config/engine_config.h"
#include "server/config/model_spec.h"
#include "server/engine/pretrained.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"
#include "server/rpc/streams.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

// A checkpoint and the model that it is of.
struct ModelToExport {
  engine::ModelConfig model;
  engine::LearningRule rule = engine::LearningRule::kBackprop;
  std::string sha256;
};

absl::StatusOr<ModelToExport> OfImported(const lookup::View& view,
                                         const v1::ExportModelRequest& request) {
  ASSIGN_OR_RETURN(const auto record, lookup::FindModel(view, request.name(), "name"));
  if (request.has_step()) {
    return lookup::InvalidField("step", absl::StrCat(request.step(), " has no effect"),
                                "no step for an imported model");
  }
  const auto spec = spec::ReadStoredModel(record.spec);
  if (!spec.ok()) return spec.status();
  ASSIGN_OR_RETURN(auto model, spec::ToEngineModel(*spec, {static_cast<int>(record.vocabulary), 0,
                                                           engine::LossPositions::kAll}));
  return ModelToExport{std::move(model), engine::LearningRule::kBackprop, record.sha256};
}

absl::StatusOr<ModelToExport> OfRun(const lookup::View& view, const std::string& run,
                                    const v1::ExportModelRequest& request) {
  std::optional<uint32_t> step;
  if (request.has_step()) step = request.step();
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(view.store, run, step));
  ASSIGN_OR_RETURN(const auto of_run, analysis::ModelOfRun(view.store, run));
  return ModelToExport{of_run.config.model, of_run.config.training.rule, checkpoint.blob};
}

absl::StatusOr<ModelToExport> FindModelToExport(const lookup::View& view,
                                                const v1::ExportModelRequest& request) {
  if (request.name().empty() == request.experiment().empty()) {
    return lookup::InvalidField("name",
                                request.name().empty() ? "neither name nor experiment is given"
                                                       : "name and experiment are both given",
                                "either models/NAME or runs/ID, or experiment and cell");
  }
  if (!request.experiment().empty()) {
    ASSIGN_OR_RETURN(const auto experiment,
                     lookup::FindExperiment(view, request.experiment(), "experiment"));
    const auto run = lookup::FindCellRun(view.store, experiment, request.cell(), "cell");
    return run.ok() ? OfRun(view, *run, request) : run.status();
  }
  if (!request.cell().empty()) {
    return lookup::InvalidField("cell", "name and cell are both given",
                                "either models/NAME or runs/ID, or experiment and cell");
  }
  if (!absl::StartsWith(request.name(), "runs/")) return OfImported(view, request);
  const auto run = lookup::FindRun(view, request.name(), "name");
  return run.ok() ? OfRun(view, *run, request) : run.status();
}

// Makes the files at once and keeps them in memory until they are sent; bytes of the checkpoint's
// size are reserved meanwhile.
class ExportModelReactor final : public rpc::PullStream<v1::FileChunk> {
 public:
  // `context` and `request` outlive the call.
  ExportModelReactor(Backend* backend, grpc::CallbackServerContext* context,
                     const v1::ExportModelRequest* request)
      : PullStream(backend->Stream(context, &backend->exports)),
        backend_(backend),
        context_(context),
        request_(request) {}

 private:
  absl::StatusOr<bool> Fill(std::deque<v1::FileChunk>* batch) override;
  absl::Status MakeFiles();
  absl::StatusOr<std::string> ReadBlob(const std::string& sha256);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::ExportModelRequest* const request_;
  bool made_ = false;
  std::shared_ptr<void> reserved_;       // memory
  std::deque<engine::NamedFile> files_;  // the first is being sent
  size_t sent_ = 0;                      // bytes of the first
};

absl::StatusOr<std::string> ExportModelReactor::ReadBlob(const std::string& sha256) {
  ASSIGN_OR_RETURN(auto reader, rpc::BlobReader::Open(backend_->store, sha256, 0));
  std::string bytes;
  while (!ended()) {
    const auto piece = reader.Next();
    if (!piece.ok()) return piece.status();
    if (!piece->has_value()) return bytes;
    bytes += **piece;
  }
  return lookup::CallCancelled();
}

absl::Status ExportModelReactor::MakeFiles() {
  made_ = true;
  ASSIGN_OR_RETURN(const auto view, backend_->FindView(context_));
  ASSIGN_OR_RETURN(const auto found, FindModelToExport(view, *request_));
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(backend_->store));
  ASSIGN_OR_RETURN(const auto size, blobs->Size(found.sha256));
  ASSIGN_OR_RETURN(reserved_, backend_->models.Take(std::min(size, lookup::kMaxModelBytes),
                                                    backend_->pool->UserOf(*context_)));
  ASSIGN_OR_RETURN(const auto checkpoint, ReadBlob(found.sha256));
  auto files = engine::ExportCheckpoint(found.model, found.rule, checkpoint);
  if (absl::IsInvalidArgument(files.status())) {
    return lookup::InvalidFields({{"name", "", "", std::string(files.status().message())}});
  }
  if (!files.ok()) return files.status();
  for (engine::NamedFile& file : *files) files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::StatusOr<bool> ExportModelReactor::Fill(std::deque<v1::FileChunk>* batch) {
  if (!made_) {
    if (const absl::Status made = MakeFiles(); !made.ok()) return made;
  }
  const engine::NamedFile& file = files_.front();
  const size_t length = std::min<size_t>(lookup::kMessageBytes, file.bytes.size() - sent_);
  v1::FileChunk& chunk = batch->emplace_back();
  chunk.set_path(file.name);
  chunk.set_data(file.bytes.substr(sent_, length));
  sent_ += length;
  if (sent_ == file.bytes.size()) {
    files_.pop_front();
    sent_ = 0;
  }
  if (files_.empty()) reserved_.reset();
  return !files_.empty();
}

}  // namespace

grpc::ServerWriteReactor<v1::FileChunk>* StartExportModel(Backend* backend,
                                                          grpc::CallbackServerContext* context,
                                                          const v1::ExportModelRequest* request) {
  return (new ExportModelReactor(backend, context, request))->Begin();
}

}  // namespace ablate::service
