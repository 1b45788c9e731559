// Look-up of token vectors, one table a run.
#ifndef ABLATE_SERVER_ENGINE_MODEL_EMBEDDING_H_
#define ABLATE_SERVER_ENGINE_MODEL_EMBEDDING_H_

#include <ATen/ATen.h>

namespace ablate::engine {

// table [R, V, d], tokens [R, N] int64 → [R, N, d]. Differentiable twice. Throws c10::Error if a
// token is outside 0…V−1 (on the CPU; a device assertion on CUDA).
at::Tensor Embedding(const at::Tensor& table, const at::Tensor& tokens);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_EMBEDDING_H_
