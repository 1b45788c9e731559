// What stands before and behind the blocks: embeddings, the final norm, the scores and their loss.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_HEAD_H_
#define ABLATE_SERVER_ENGINE_NATIVE_HEAD_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// What a batch's loss is made of.
struct Objective {
  float smoothing = 0;
  float weight = 1;  // of a target in the gradient: 1/(targets of the whole batch)
};

// Sums over targets.
struct LossSums {
  double loss = 0;
  double hits = 0;  // highest scores that are the target
  double tokens = 0;
};

// The rows that are added to tokens' embeddings: learned, sinusoidal or none.
class PositionTable {
 public:
  explicit PositionTable(const ModelConfig& config);

  // Of [width]; null if nothing is added.
  const float* Row(const Model& model, int position) const;

 private:
  const ModelConfig& config_;
  Floats sinusoids_;
};

// The head on columns. Not thread-safe.
class Head {
 public:
  explicit Head(Layers& layers) : layers_(layers) {}

  // The losses of a group's columns, whose targets are given, and what goes back.
  LossSums Forward(const Model& model, const float* stream, const ColumnGroup& group,
                   const std::vector<int32_t>& target, const Objective& objective);
  // Adds the head's gradients; the gradient of the stream that Forward read, in d.
  void Back(const Model& model, const ColumnGroup& group, float* d);

  // Without gradients.
  LossSums Score(const Model& model, const float* stream, const ColumnGroup& group,
                 absl::Span<const Reading> readings);

  // Of the next token, [V][columns]; valid until the head is used again.
  const float* Scores(const Model& model, const float* stream, const ColumnGroup& group);

  // dL/dscores of the last Forward, [V][columns].
  const float* error() const { return scores_.data(); }

 private:
  Layers& layers_;
  NormMemory norm_;
  Floats in_;
  Floats scores_;
  Floats losses_;
  std::vector<int32_t> best_;
};

// d ← Bᵀ·error, for B [V, width].
void BackThroughFeedback(const Layers& layers, const float* feedback, const float* error,
                         int columns, float* d);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_HEAD_H_
