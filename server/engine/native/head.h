// Computes the parts before and after the blocks: embeddings, the final norm, the logits and their
// loss.
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

// How a batch's loss is computed.
struct Objective {
  float smoothing = 0;
  float weight = 1;  // of a target in the gradient: 1/(targets of the whole batch)
  float z_loss = 0;
};

// Sums over targets.
struct LossSums {
  double loss = 0;
  double correct = 0;  // correct predictions: the target has the highest logit
  double tokens = 0;
};

// Holds the rows added to token embeddings: learned, sinusoidal or none.
class PositionTable {
 public:
  explicit PositionTable(const ModelConfig& config);

  // Returns the row [width] of a position; null if nothing is added.
  const float* Row(const Model& model, int position) const;

 private:
  const ModelConfig& config_;
  Floats sinusoids_;
};

// Computes the head on columns. Not thread-safe.
class Head {
 public:
  explicit Head(Layers& layers) : layers_(layers) {}

  // Returns the losses of a group's columns with these targets, and keeps what Back needs.
  LossSums Forward(const Model& model, const float* stream, const ColumnGroup& group,
                   const std::vector<int32_t>& target, const Objective& objective);
  // Adds the head's gradients. Writes the gradient of the stream that Forward read to d.
  void Back(const Model& model, const ColumnGroup& group, float* d);

  // Returns the losses without gradients.
  LossSums Score(const Model& model, const float* stream, const ColumnGroup& group,
                 absl::Span<const Reading> readings);

  // Returns the logits of the next token, [V][columns]; valid until the head is used again.
  const float* Logits(const Model& model, const float* stream, const ColumnGroup& group);

  // dL/dlogits of the last Forward, [V][columns]; of capped logits, if they are.
  const float* error() const { return logits_.data(); }

 private:
  Layers& layers_;
  NormMemory norm_;
  Floats in_;
  Floats logits_;
  Floats capped_;  // if logits are capped: first they, then the gradient before the cap
  Floats losses_;
  std::vector<int32_t> best_;
};

// d ← Bᵀ·error, for B [V, width].
void BackThroughFeedback(const Layers& layers, const float* feedback, const float* error,
                         int columns, float* d);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_HEAD_H_
