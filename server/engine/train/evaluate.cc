// Sums losses and hits over all held-out tokens in float64.
#include "server/engine/train/evaluate.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "server/engine/model/layers.h"
#include "server/engine/model/transformer.h"

namespace ablate::engine {

void Evaluate(const ModelConfig& config, const ModelParameters& parameters, const StackBatch& batch,
              EvaluationSums* sums) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = Logits(config, parameters, batch, Pass());  // [1, N, V]
  const double loss = TokenLosses(logits, batch).sum(at::kDouble).item<double>();
  at::Tensor hit = logits.argmax(-1).eq(batch.targets);  // [1, N]
  if (batch.counted.defined()) hit = hit.logical_and(batch.counted.to(at::kBool));
  const double hits = hit.sum().item<double>();
  const double tokens = batch.counted.defined() ? batch.counted.sum(at::kDouble).item<double>()
                                                : static_cast<double>(batch.targets.numel());
  *sums = {sums->batches + 1, sums->loss + loss, sums->hits + hits, sums->tokens + tokens};
}

Evaluation ResultOf(const EvaluationSums& sums) {
  // Where scores are no numbers none is the highest, and argmax still names one.
  const double accuracy =
      std::isfinite(sums.loss) ? sums.hits / sums.tokens : std::numeric_limits<double>::quiet_NaN();
  return {sums.loss / sums.tokens, accuracy};
}

}  // namespace ablate::engine
