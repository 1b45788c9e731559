// Runs the model and autograd; gradients land in the flat buffer through the leaves' `.grad`.
#include "server/engine/train/gradient.h"

#include <ATen/core/grad_mode.h>

#include "server/engine/model/loss.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {

BatchGradient Differentiate(const ModelConfig& model, LearningRule rule, const StackBatch& batch,
                            const FlatParameters& parameters) {
  parameters.gradients().zero_();
  const at::Tensor logits = Logits(model, parameters.model(), batch, rule);  // [R, N, V]
  const at::Tensor losses = RunLosses(logits, batch);                        // [R]
  losses.backward(at::ones_like(losses));
  const at::NoGradGuard no_grad;
  return {losses.detach(), at::linalg_vector_norm(parameters.gradients(), 2, {1})};
}

}  // namespace ablate::engine
