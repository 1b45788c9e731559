#include "server/worker/run_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/config/engine_config.h"
#include "server/config/fields.h"

namespace ablate::worker {
namespace {

constexpr uint64_t kDataSetCacheBytes = 256 << 20;

// Returns true if the state itself is at fault.
bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDataLoss(status);
}

absl::Status Annotate(const absl::Status& status, const std::string& what) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const engine::TaskData>> DataSets::Get(const GrantedBlob& blob,
                                                                      const engine::TaskKind& task,
                                                                      RunControl& control) {
  const std::string key = absl::StrCat(task.name, " ", blob.sha256);
  {
    MutexLock lock(&mutex_);
    if (auto known = Find(key)) return known;
  }
  ASSIGN_OR_RETURN(const SharedBytes file, blobs_->Read(blob.grant, blob.sha256, control));
  absl::StatusOr<std::shared_ptr<const engine::TaskData>> data = task.read(file.view());
  if (!data.ok()) return data;
  return Keep({key, *std::move(data)});
}

std::shared_ptr<const engine::TaskData> DataSets::Find(const std::string& key) {
  const auto found = std::find_if(recent_.begin(), recent_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return recent_.front().data;
}

std::shared_ptr<const engine::TaskData> DataSets::Keep(Entry entry) {
  MutexLock lock(&mutex_);
  if (auto known = Find(entry.key)) return known;
  recent_.push_front(std::move(entry));
  uint64_t bytes = 0;
  for (const Entry& known : recent_) bytes += known.data->bytes();
  while (bytes > capacity_bytes_ && recent_.size() > 1) {
    bytes -= recent_.back().data->bytes();
    recent_.pop_back();
  }
  return recent_.front().data;
}

RunSetup::RunSetup(TrainerFactory make_trainer, BlobChannel* blobs)
    : make_trainer_(std::move(make_trainer)),
      blobs_(blobs),
      data_sets_(blobs, kDataSetCacheBytes) {}

absl::StatusOr<engine::RunConfig> RunSetup::Read(const v1::Grant& grant, RunControl& control) {
  const v1::GrantedRun& run = grant.run();
  return ReadConfig(run.spec(), {grant.lease(), run.dataset_blob()}, &data_sets_, control);
}

absl::StatusOr<std::unique_ptr<engine::Trainer>> RunSetup::Make(const engine::RunConfig& config,
                                                                const v1::Grant& grant,
                                                                const std::string& resume,
                                                                RunControl& control) {
  const v1::GrantedRun& run = grant.run();
  auto trainer = make_trainer_(config);
  if (!trainer.ok()) return trainer;
  if (!resume.empty()) {
    RETURN_IF_ERROR((*trainer)->ImportState(resume));
    return trainer;
  }
  if (run.resume_blob().empty()) {
    RETURN_IF_ERROR(StartFrom(grant, trainer->get(), control));
    return trainer;
  }
  const absl::StatusOr<SharedBytes> state = blobs_->Read(grant.lease(), run.resume_blob(), control);
  const absl::Status imported =
      state.ok() ? (*trainer)->ImportState(state->view()) : state.status();
  if (imported.ok()) return trainer;
  return absl::Status(
      IsRefusal(imported) ? absl::StatusCode::kAborted : imported.code(),
      absl::StrCat("cannot resume from step ", run.resume_step(), ": ", imported.message()));
}

absl::Status RunSetup::StartFrom(const v1::Grant& grant, engine::Trainer* trainer,
                                 RunControl& control) {
  const std::string& blob = grant.run().initial_blob();
  if (blob.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SharedBytes checkpoint, blobs_->Read(grant.lease(), blob, control));
  const absl::Status started = trainer->StartFrom(checkpoint.view());
  return started.ok() ? started : Annotate(started, "cannot begin with model_from");
}

absl::StatusOr<engine::RunConfig> ReadConfig(ablate::v1::RunSpec run, const GrantedBlob& data_set,
                                             DataSets* data_sets, RunControl& control) {
  // A server older than this worker omits fields that it lacks. A default never changes.
  spec::FillFields(run.mutable_spec());
  // Before anything is fetched for it.
  RETURN_IF_ERROR(spec::CheckKnown(run));
  engine::TaskConfig task = spec::ToEngineTask(run.spec().task());
  const engine::TaskKind& kind = engine::KindOf(task);
  if (kind.read != nullptr) {
    auto data = data_sets->Get(data_set, kind, control);
    if (!data.ok()) {
      const std::string* name = spec::DatasetOf(run.spec().task()).name;
      return Annotate(data.status(),
                      absl::StrCat("cannot use data set ", name == nullptr ? "" : *name));
    }
    kind.set_data(*std::move(data), &task);
  }
  ASSIGN_OR_RETURN(const engine::TaskShape shape, kind.shape(task));
  absl::StatusOr<engine::RunConfig> config = spec::ToEngineConfig(run, shape);
  if (config.ok()) config->task = std::move(task);
  return config;
}

}  // namespace ablate::worker
