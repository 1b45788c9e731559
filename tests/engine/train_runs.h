// Runs trainers in tests.
#ifndef ABLATE_TESTS_ENGINE_TRAIN_RUNS_H_
#define ABLATE_TESTS_ENGINE_TRAIN_RUNS_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/safetensors.h"
#include "server/engine/core/layout.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {

// Creates a trainer, and prepares the calling thread as a lane.
inline std::unique_ptr<Trainer> MustMakeTrainer(const RunConfig& run) {
  PrepareLaneThread();
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer(run);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return *std::move(trainer);
}

inline RunProgress Advance(Trainer& trainer, uint32_t steps) {
  absl::StatusOr<RunProgress> progress = trainer.Advance(steps, [] { return false; });
  EXPECT_TRUE(progress.ok()) << progress.status();
  return *std::move(progress);
}

// Returns points as exact text, so that equal text means equal bits.
inline std::vector<std::string> Exactly(const std::vector<Point>& points) {
  std::vector<std::string> text;
  for (const Point& point : points) {
    text.push_back(point.key + " " + std::to_string(point.step) + " " +
                   std::to_string(std::bit_cast<uint64_t>(point.value)));
  }
  return text;
}

inline std::vector<uint32_t> StepsOf(const std::vector<Point>& points, const std::string& key) {
  std::vector<uint32_t> steps;
  for (const Point& point : points) {
    if (point.key == key) steps.push_back(point.step);
  }
  return steps;
}

inline std::vector<double> ValuesOf(const std::vector<Point>& points, const std::string& key) {
  std::vector<double> values;
  for (const Point& point : points) {
    if (point.key == key) values.push_back(point.value);
  }
  return values;
}

// Returns a run whose gradient can be made NaN while its loss stays finite.
inline RunConfig SteepRun(uint32_t seed) {
  RunConfig run = SmallRecallRun(seed);
  run.model.activation = Activation::kGeluTanh;
  run.model.norm.placement = NormPlacement::kPre;
  return run;
}

// Returns the state with feed-forward activations of 10²⁰: their derivative is 0 · ∞, but the
// output weights make their sum harmless.
inline std::string Steepened(const RunConfig& run, const std::string& state) {
  const absl::StatusOr<SafetensorsFile> file = ParseSafetensors(state);
  EXPECT_TRUE(file.ok()) << file.status();
  std::vector<TensorView> tensors = file->tensors;
  std::string values;
  for (TensorView& tensor : tensors) {
    if (tensor.name != "parameters") continue;
    values = std::string(tensor.bytes);
    tensor.bytes = values;
  }
  const auto fill = [&](const std::string& name, float value) {
    bool found = false;
    for (const ParameterInfo& parameter : MakeLayout(run.model).parameters) {
      if (parameter.name != name) continue;
      found = true;
      for (int64_t i = parameter.offset; i < parameter.offset + parameter.size; ++i) {
        std::memcpy(values.data() + i * sizeof(float), &value, sizeof(float));
      }
    }
    EXPECT_TRUE(found) << name;
  };
  fill("block.0.feed_forward.up.bias", 1e20F);
  fill("block.0.feed_forward.down.weight", 1e-21F);
  return *WriteSafetensors(tensors, file->metadata);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_TRAIN_RUNS_H_
