// The model family: one forward pass whose parts are switched by ModelConfig.
#ifndef ABLATE_SERVER_ENGINE_MODEL_TRANSFORMER_H_
#define ABLATE_SERVER_ENGINE_MODEL_TRANSFORMER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/model/attention.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"
#include "server/engine/model/pass.h"

namespace ablate::engine {

// Scores of the next token: [B·T, V], or [B, V] at the last positions when the loss reads
// only those (the last block is then computed there alone, unless a norm reads the others, too).
// By backprop with exact norms it is differentiable twice with respect to `parameters`. Their
// gradient by another rule is that rule's. A pass that tracks statistics changes the running ones.
at::Tensor Logits(const ModelConfig& config, const ModelParameters& parameters,
                  const BatchTensors& batch, const Pass& pass);

// A causal model that reads a batch of sequences token by token: each costs one
// position, not the whole prefix. `parameters` must outlive it. Outside autograd.
class Decoder {
 public:
  Decoder(const ModelConfig& config, const ModelParameters& parameters, int64_t rows);

  // Appends a token to every sequence, at most `context` times: tokens [B] int64 → scores of the
  // next one, [B, V].
  at::Tensor Next(const at::Tensor& tokens);
  // Goes on with these sequences only: rows [B'] int64, in their new order.
  void Keep(const at::Tensor& rows);

 private:
  const ModelConfig& config_;
  const ModelParameters& parameters_;
  std::vector<SeenPositions> seen_;  // by block
  int64_t position_ = 0;             // of the next token
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_TRANSFORMER_H_
