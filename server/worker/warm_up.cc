// A tiny run that goes through every stage of a real one.
#include "server/worker/warm_up.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "server/engine/task.h"

namespace ablate::worker {
namespace {

constexpr char kDocuments[] = "a warm start\nis half\nthe race\nfor everyone\nelse\n";

absl::StatusOr<engine::RunConfig> TinyRun() {
  engine::RunConfig config;
  absl::StatusOr<engine::DocumentsTask> task = engine::ReadDocumentsTask(kDocuments, 2);
  if (!task.ok()) return task.status();
  config.task = *std::move(task);
  const absl::StatusOr<engine::TaskShape> shape = engine::KindOf(config.task).shape(config.task);
  if (!shape.ok()) return shape.status();
  config.model.vocabulary = shape->vocabulary;
  config.model.loss = shape->loss;
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

}  // namespace

absl::Status WarmUp(const TrainerFactory& make_trainer) {
  absl::StatusOr<engine::RunConfig> config = TinyRun();
  if (!config.ok()) return config.status();
  const uint32_t steps = config->training.steps;
  const auto trainer = make_trainer({*std::move(config)});
  if (!trainer.ok()) return trainer.status();
  if (const auto advanced = (*trainer)->Advance(steps, [] { return false; }); !advanced.ok()) {
    return advanced.status();
  }
  return (*trainer)->ExportState(0).status();
}

absl::Status WarmUpAnalyses(const TrainerFactory& make_trainer, const SampleGenerator& generate) {
  const absl::StatusOr<engine::RunConfig> config = TinyRun();
  if (!config.ok()) return config.status();
  const auto trainer = make_trainer({*config});
  if (!trainer.ok()) return trainer.status();
  const absl::StatusOr<std::string> checkpoint = (*trainer)->ExportCheckpoint(0);
  if (!checkpoint.ok()) return checkpoint.status();
  const std::atomic<bool> never{false};
  return generate(*config, *checkpoint, {}, never, [](const auto&) {}).status();
}

}  // namespace ablate::worker
