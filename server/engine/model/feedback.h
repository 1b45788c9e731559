// Direct feedback alignment: the output error as the gradient of every block's output.
#ifndef ABLATE_SERVER_ENGINE_MODEL_FEEDBACK_H_
#define ABLATE_SERVER_ENGINE_MODEL_FEEDBACK_H_

#include <ATen/ATen.h>

#include <vector>

namespace ablate::engine {

// Where the output error reaches the model.
struct FeedbackTargets {
  std::vector<at::Tensor> outputs;   // [B·T, d] each, or [B, d] at the scored positions
  std::vector<at::Tensor> matrices;  // [V, d] each
  // What an error [B, d] of scored positions is to an output that has all of them.
  at::Tensor last;  // [B] int64, the scored position of every row; undefined: all are scored
};

// `logits` [M, V], in whose backward pass each output's gradient becomes e·B, e being the
// gradient of the logits and B its matrix; 0 at positions that are not scored.
at::Tensor InjectErrors(const at::Tensor& logits, const FeedbackTargets& targets);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_FEEDBACK_H_
