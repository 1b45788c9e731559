// Sums losses and hits over all held-out tokens in float64.
#include "server/engine/train/evaluate.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "server/engine/model/loss.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {

Evaluation Evaluate(const ModelConfig& config, const ModelParameters& parameters,
                    const std::vector<StackBatch>& batches) {
  const at::NoGradGuard no_grad;
  double loss = 0, hits = 0, tokens = 0;
  for (const StackBatch& batch : batches) {
    const at::Tensor logits =
        Logits(config, parameters, batch, LearningRule::kBackprop);  // [1, N, V]
    loss += TokenLosses(logits, batch).sum(at::kDouble).item<double>();
    at::Tensor hit = logits.argmax(-1).eq(batch.targets);  // [1, N]
    if (batch.counted.defined()) hit = hit.logical_and(batch.counted.to(at::kBool));
    hits += hit.sum().item<double>();
    tokens += batch.counted.defined() ? batch.counted.sum(at::kDouble).item<double>()
                                      : static_cast<double>(batch.targets.numel());
  }
  // Where scores are no numbers none is the highest, and argmax still names one.
  const double accuracy =
      std::isfinite(loss) ? hits / tokens : std::numeric_limits<double>::quiet_NaN();
  return {loss / tokens, accuracy};
}

}  // namespace ablate::engine
