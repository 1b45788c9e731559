// Computes the forward pass of the model family, whose parts are switched by ModelConfig.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_TRANSFORMER_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_TRANSFORMER_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/torch/model/attention.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/pass.h"

namespace ablate::engine {

// Returns the logits of the next token: [B·T, V], or [B, V] if the loss reads the last positions
// only (the last block is then computed there alone, unless a norm also reads the others). Twice
// differentiable in `parameters` with backpropagation and exact norms. Another rule gives that
// rule's gradient. A pass with kBatchAndTrack updates the running statistics.
at::Tensor Logits(const ModelConfig& config, const ModelParameters& parameters,
                  const BatchTensors& batch, const Pass& pass);

// Returns the input of the head, of which Logits makes the logits: [B·T, d], or [B, d]. For hooks
// before the logits, which take a large part of a pass if the vocabulary is large.
at::Tensor HeadInput(const ModelConfig& config, const ModelParameters& parameters,
                     const BatchTensors& batch, const Pass& pass);

// Returns MeanLoss of the logits, a scalar. If pass.once, memory holds a part of very many logits
// at a time.
at::Tensor BatchLoss(const ModelConfig& config, const ModelParameters& parameters,
                     const BatchTensors& batch, const Pass& pass, const Objective& objective);

// Returns ScoreLogits of the logits, without a graph; memory as BatchLoss.
at::Tensor ScoreBatch(const ModelConfig& config, const ModelParameters& parameters,
                      const BatchTensors& batch, const Pass& pass);

// Runs a causal model token by token on a batch of sequences, with a key-value cache: each token
// costs one position. `parameters` must outlive it. Records no autograd graph.
class Decoder {
 public:
  Decoder(const ModelConfig& config, const ModelParameters& parameters, int64_t rows);

  // Appends a token to every sequence, at most `context` times: tokens [B] int64 → logits of the
  // next token, [B, V].
  at::Tensor Next(const at::Tensor& tokens);
  // Keeps only these sequences: rows [B'] int64, in their new order.
  void Keep(const at::Tensor& rows);

 private:
  const ModelConfig& config_;
  const ModelParameters& parameters_;
  std::vector<SeenPositions> seen_;  // by block
  int64_t position_ = 0;             // of the next token
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_TRANSFORMER_H_
