#include "server/worker/warm_up.h"

#include <atomic>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "server/engine/names.h"
#include "server/engine/samples.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"

namespace ablate::worker {
namespace {

constexpr char kTinyText[] = "a warm start\nis half\nthe race\nfor everyone\nelse\n";

// Returns a tiny run that goes through every stage of a real one.
absl::StatusOr<engine::RunConfig> TinyRun() {
  engine::RunConfig config;
  ASSIGN_OR_RETURN(config.task, engine::ReadDocumentsTask(kTinyText, 2));
  ASSIGN_OR_RETURN(const engine::TaskShape shape, engine::KindOf(config.task).shape(config.task));
  config.model.vocabulary = shape.vocabulary;
  config.model.loss = shape.loss;
  config.model.layers = 1;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.hidden = 32;
  config.model.context = 16;
  config.training.steps = 3;
  config.training.batch = 2;
  config.training.clip = 1;
  return config;
}

absl::Status WarmUpTrainer(engine::TrainerKind kind,
                           const std::shared_ptr<engine::Accelerator>& accelerator) {
  ASSIGN_OR_RETURN(engine::RunConfig config, TinyRun());
  config.training.trainer = kind;
  if (accelerator != nullptr) config.device = engine::Device::kCuda;
  const uint32_t steps = config.training.steps;
  ASSIGN_OR_RETURN(const auto trainer, engine::MakeTrainer(config, accelerator));
  if (const auto advanced = trainer->Advance(steps, [] { return false; }); !advanced.ok()) {
    return advanced.status();
  }
  return trainer->ExportState().status();
}

}  // namespace

std::vector<engine::TrainerKind> TrainersOn(engine::Device device) {
  if (device == engine::Device::kCuda) return {engine::TrainerKind::kTorch};
  std::vector<engine::TrainerKind> trainers;
  for (const auto& trainer : engine::kNames<engine::TrainerKind>) trainers.push_back(trainer.value);
  return trainers;
}

absl::Status WarmUpTraining(const std::shared_ptr<engine::Accelerator>& accelerator) {
  const auto device = accelerator != nullptr ? engine::Device::kCuda : engine::Device::kCpu;
  for (const engine::TrainerKind trainer : TrainersOn(device)) {
    if (absl::Status status = WarmUpTrainer(trainer, accelerator); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WarmUpAnalyses() {
  ASSIGN_OR_RETURN(const engine::RunConfig config, TinyRun());
  ASSIGN_OR_RETURN(const auto trainer, engine::MakeTrainer(config));
  ASSIGN_OR_RETURN(const std::string checkpoint, trainer->ExportCheckpoint());
  const std::atomic<bool> never{false};
  return engine::GenerateSamples(config, checkpoint, {}, never, [](const auto&) {}).status();
}

}  // namespace ablate::worker
