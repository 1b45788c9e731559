#include "server/analysis/subjects.h"

#include <memory>
#include <string>
#include <utility>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/analysis/document_facts.h"
#include "server/analysis/times.h"
#include "server/config/analysis_options.h"
#include "server/config/engine_config.h"
#include "server/config/fields.h"
#include "server/config/program.h"
#include "server/engine/analysis.h"
#include "server/experiment/analysis.h"
#include "server/experiment/analysis_time.h"
#include "server/experiment/fingerprint.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/rpc/blob_streams.h"

namespace ablate::analysis {
namespace {

// Returns a data set with these bytes; its name doesn't matter here. NOT_FOUND.
absl::StatusOr<storage::DatasetRecord> DatasetOf(storage::Store* store, const std::string& sha256) {
  ASSIGN_OR_RETURN(auto found, store->FindDatasetsOf(storage::kServer, sha256));
  if (found.empty()) return absl::NotFoundError("the data set was deleted. Upload it again");
  return std::move(found.front());
}

// Builds the subject's message for its worker; adds the blobs it reads and its wish for a GPU to
// the request.
absl::StatusOr<worker::v1::ComputationSubject> Prepare(storage::Store* store,
                                                       const storage::AnalysisSubject& subject,
                                                       schedule::AnalysisRequest* request) {
  ASSIGN_OR_RETURN(const auto run, store->GetRun(subject.run));
  auto spec = SpecOf(run);
  if (!spec.ok()) return spec.status();
  ASSIGN_OR_RETURN(const auto checkpoint, lookup::FindCheckpoint(store, subject.run, subject.step));
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(store));
  request->on_gpu = request->on_gpu || run.parameters >= spec::kGpuAnalysisParameters;
  worker::v1::ComputationSubject message;
  *message.mutable_spec() = *std::move(spec);
  message.set_checkpoint_blob(checkpoint.blob);
  message.set_dataset_blob(run.dataset_blob);
  for (const std::string& sha256 : {checkpoint.blob, run.dataset_blob}) {
    if (sha256.empty()) continue;
    ASSIGN_OR_RETURN(auto pin, blobs->Find(sha256));
    request->blobs.push_back(std::move(pin));
  }
  return message;
}

// Pins the data set that inputs name, or another one of the same bytes.
absl::StatusOr<std::shared_ptr<storage::Blobs::Pin>> PinInputs(storage::Store* store,
                                                               const v1::AnalysisInputs& inputs) {
  const auto dataset = DatasetOf(store, inputs.dataset_sha256());
  if (absl::IsNotFound(dataset.status())) {
    return absl::NotFoundError(
        absl::StrCat("inputs.dataset: ", inputs.dataset(), " was deleted before it was read"));
  }
  if (!dataset.ok()) return dataset.status();
  ASSIGN_OR_RETURN(const auto blobs, rpc::BlobsOf(store));
  return blobs->Find(dataset->sha256);
}

// Sets the expected time of a computation, and the fraction of a worker's state memory that it
// needs.
absl::Status SetCost(storage::Store* store, const v1::Analysis& asked,
                     const storage::AnalysisRecord& analysis, schedule::AnalysisRequest* request) {
  ASSIGN_OR_RETURN(const auto options, spec::ToEngineOptions(asked.analysis()));
  engine::RunConfig config;
  if (!analysis.subjects.empty()) {
    ASSIGN_OR_RETURN(auto first, ModelOfRun(store, analysis.subjects.front().run));
    config = std::move(first.config);
  }
  const engine::AnalysisKind& kind = engine::KindOf(options);
  uint64_t text_bytes = 0;
  if (!asked.inputs().dataset().empty()) {
    // If it is gone, the worker's request says so.
    const auto dataset = DatasetOf(store, asked.inputs().dataset_sha256());
    if (dataset.ok()) text_bytes = TextBytesOf(store, *dataset).value_or(0);
  }
  const uint64_t tokens = spec::MostTokens(asked.inputs(), text_bytes, config.model.context);
  const engine::AnalysisCost cost = kind.cost(options, config, tokens, analysis.subjects.size());
  const spec::AnalysisTime guess = spec::GuessAnalysisTime(kind, cost, tokens, config);
  ASSIGN_OR_RETURN(const auto made,
                   store->MeasuredAnalysisTimes(spec::PrivateTo(analysis.private_to, guess.group)));
  request->work = ExpectTime({guess.micros, guess.micros}, made).micros;
  request->state =
      static_cast<double>(cost.state_bytes) / static_cast<double>(spec::kMaxStateBytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<engine::TaskShape> ShapeOfTask(storage::Store* store, const v1::TaskSpec& task,
                                              const std::string& dataset_blob) {
  if (spec::DatasetOf(task).name == nullptr) return spec::ShapeOf(task, {});
  ASSIGN_OR_RETURN(const auto dataset, DatasetOf(store, dataset_blob));
  ASSIGN_OR_RETURN(const auto facts, FactsOf(store, dataset, task.has_text()));
  return spec::ShapeOf(task, facts);
}

absl::StatusOr<v1::RunSpec> SpecOf(const storage::RunRecord& run) {
  v1::RunSpec spec;
  if (spec::ReadStoredRun(run.spec, &spec)) return spec;
  return absl::DataLossError(absl::StrCat("the stored spec of run ", run.id, " can't be read"));
}

absl::Status CheckTrainsModel(absl::string_view run, const v1::RunSpec& spec) {
  if (spec::IsModel(spec.spec())) return absl::OkStatus();
  if (spec.spec().has_imported()) {
    return lookup::WithReason(
        absl::FailedPreconditionError(absl::StrCat("run ", run,
                                                   " was trained elsewhere, and only its numbers "
                                                   "are here; expected a run that trains a model")),
        "RUN_IS_IMPORTED");
  }
  return lookup::WithReason(
      absl::FailedPreconditionError(absl::StrCat("run ", run,
                                                 " is a program, which has no model of ours; "
                                                 "expected a run that trains a model")),
      "RUN_IS_A_PROGRAM");
}

absl::StatusOr<AnalyzedModel> ModelOfRun(storage::Store* store, const std::string& run) {
  ASSIGN_OR_RETURN(const auto record, store->GetRun(run));
  const auto spec = SpecOf(record);
  if (!spec.ok()) return spec.status();
  RETURN_IF_ERROR(CheckTrainsModel(run, *spec));
  ASSIGN_OR_RETURN(const auto shape, ShapeOfTask(store, spec->spec().task(), record.dataset_blob));
  ASSIGN_OR_RETURN(auto config, spec::ToEngineConfig(*spec, shape));
  return AnalyzedModel{std::move(config), record.dataset_blob};
}

absl::StatusOr<schedule::AnalysisRequest> PrepareComputation(
    storage::Store* store, const storage::AnalysisRecord& analysis) {
  v1::Analysis asked;
  if (!asked.ParseFromString(analysis.request)) {
    return absl::DataLossError(absl::StrCat("stored analysis ", analysis.id, " can't be read"));
  }
  schedule::AnalysisRequest request;
  worker::v1::Computation& message = *request.message.mutable_computation();
  *message.mutable_analysis() = asked.analysis();
  *message.mutable_inputs() = asked.inputs();
  message.set_seed(asked.seed());
  message.set_state_blob(analysis.state_blob);
  request.state_on_gpu = analysis.state_on_gpu.value_or(request.on_gpu);
  if (!asked.inputs().dataset().empty()) {
    ASSIGN_OR_RETURN(auto dataset, PinInputs(store, asked.inputs()));
    message.set_dataset_blob(asked.inputs().dataset_sha256());
    request.blobs.push_back(std::move(dataset));
  }
  RETURN_IF_ERROR(SetCost(store, asked, analysis, &request));
  for (const storage::AnalysisSubject& subject : analysis.subjects) {
    ASSIGN_OR_RETURN(*message.add_subjects(), Prepare(store, subject, &request));
  }
  return request;
}

}  // namespace ablate::analysis
