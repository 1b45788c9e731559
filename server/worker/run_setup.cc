// Fetches what a run needs and makes its trainer.
#include "server/worker/run_setup.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/spec/engine_config.h"

namespace ablate::worker {
namespace {

constexpr uint64_t kDataSetCacheBytes = 256 << 20;

// Whether the state itself is at fault, not what was done with it.
bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDataLoss(status);
}

absl::Status Annotate(const absl::Status& status, const std::string& what) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

engine::TaskShape RecallShape(const ablate::v1::LegacyRecallTask& task) {
  engine::LegacyRecallTask recall;
  recall.keys = static_cast<int>(task.keys());
  recall.draw = static_cast<int>(task.draw());
  return engine::LegacyRecallShape(recall);
}

}  // namespace

RunSetup::RunSetup(TrainerFactory make_trainer, BlobChannel* blobs)
    : make_trainer_(std::move(make_trainer)),
      blobs_(blobs),
      data_sets_(blobs, kDataSetCacheBytes) {}

absl::StatusOr<std::unique_ptr<engine::Trainer>> RunSetup::Make(const std::string& lease,
                                                                const v1::GrantedRun& run,
                                                                RunControl& control) {
  absl::StatusOr<engine::RunConfig> config =
      ReadConfig(run.spec(), {lease, run.dataset_blob()}, &data_sets_, control);
  if (!config.ok()) return config.status();
  auto trainer = make_trainer_({*std::move(config)});
  if (!trainer.ok() || run.resume_blob().empty()) return trainer;
  const absl::StatusOr<std::string> state = blobs_->Read(lease, run.resume_blob(), control);
  const absl::Status imported = state.ok() ? (*trainer)->ImportState(0, *state) : state.status();
  if (imported.ok()) return trainer;
  return absl::Status(
      IsRefusal(imported) ? absl::StatusCode::kAborted : imported.code(),
      absl::StrCat("cannot resume from step ", run.resume_step(), ": ", imported.message()));
}

absl::StatusOr<engine::RunConfig> ReadConfig(const ablate::v1::RunSpec& run,
                                             const RightfulBlob& data_set, DataSets* data_sets,
                                             RunControl& control) {
  // Before anything is fetched for it.
  if (absl::Status known = spec::CheckKnown(run); !known.ok()) return known;
  const ablate::v1::TaskSpec& task = run.spec().task();
  switch (task.kind_case()) {
    case ablate::v1::TaskSpec::kLegacyRecall:
      return spec::ToEngineConfig(run, RecallShape(task.legacy_recall()));
    case ablate::v1::TaskSpec::kDocuments: {
      const auto known = data_sets->Get(data_set.right, data_set.sha256, control);
      if (!known.ok()) {
        return Annotate(known.status(),
                        absl::StrCat("cannot use data set ", task.documents().dataset()));
      }
      absl::StatusOr<engine::RunConfig> config = spec::ToEngineConfig(run, (*known)->shape);
      if (!config.ok()) return config.status();
      std::get<engine::DocumentsTask>(config->task).text = {*known, &(*known)->text};
      return config;
    }
    case ablate::v1::TaskSpec::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("task: it is not set");
}

}  // namespace ablate::worker
