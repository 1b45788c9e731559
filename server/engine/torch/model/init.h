// Draws the initial values of a run's parameters and buffers.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_INIT_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_INIT_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "server/engine/config.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {

// Returns the initial parameters of one run, [P] float32 on the CPU. They depend on (model, seed)
// alone. Norm gains are 1 and shifts 0 in every kind. The rest:
//
//   kind         embeddings   linear weights                     linear biases
//   pytorch      N(0, 1)      U(±1/√fan_in)                      U(±1/√fan_in)
//   pytorch_mha  N(0, 1)      qkv Xavier over [3d, d], others    0 in attention, others as pytorch
//                             as pytorch
//   xavier       N(0, 1)      Xavier uniform (qkv over [3d, d])  0
//   gpt2         N(0, 0.02)   N(0, 0.02)                         0
//
// A tied head draws nothing. Streams by name: each parameter has a generator seeded by
// StreamSeed(seed, "init/" + name), so that models that share a parameter share its value.
// Sequential streams: LibTorch's CPU generator, seeded with `seed` and consumed in the order in
// which PyTorch's modules would draw after torch.manual_seed(seed), which is the order of the
// layout (for pytorch_mha as nn.MultiheadAttention draws: projection before qkv).
at::Tensor InitialParameters(const ModelConfig& model, const ParameterLayout& layout,
                             uint32_t seed);

// Returns the initial buffers of one run, float32 on the CPU; undefined if the layout has none.
// Running means are 0 and variances 1. Feedback is N(0, 0.02); each matrix has a stream of its own,
// seeded by StreamSeed(seed, "feedback/" + name).
at::Tensor InitialBuffers(const ParameterLayout& layout, uint32_t seed);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_INIT_H_
