// Replaces the gradient of every block's output by the projected output error: direct feedback
// alignment.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_FEEDBACK_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_FEEDBACK_H_

#include <ATen/ATen.h>

#include <vector>

namespace ablate::engine {

// The tensors that receive the output error.
struct FeedbackTargets {
  std::vector<at::Tensor> outputs;   // [B·T, d] each, or [B, d] at the scored positions
  std::vector<at::Tensor> matrices;  // [V, d] each
  // Selects the positions, among all positions of an output, that an error [B, d] belongs to.
  at::Tensor last;  // [B] int64, the scored position of every row; undefined if all are scored
};

// Returns `logits` [M, V] with a backward pass that sets each output's gradient to e·B, where e is
// the gradient of the logits and B the output's matrix; 0 at positions that aren't scored.
at::Tensor InjectErrors(const at::Tensor& logits, const FeedbackTargets& targets);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_FEEDBACK_H_
