// Cross entropy from a log-softmax and a look-up.
#include "server/engine/model/loss.h"

namespace ablate::engine {

at::Tensor TokenLosses(const at::Tensor& logits, const StackBatch& batch) {
  const at::Tensor log_probabilities = logits.log_softmax(-1);  // [R, N, V]
  const at::Tensor losses =
      -log_probabilities.gather(2, batch.targets.unsqueeze(2)).squeeze(2);  // [R, N]
  return batch.counted.defined() ? losses * batch.counted : losses;         // [R, N]
}

at::Tensor RunLosses(const at::Tensor& logits, const StackBatch& batch) {
  const at::Tensor losses = TokenLosses(logits, batch);  // [R, N]
  return batch.counted.defined() ? losses.sum(1) / batch.counted.sum(1) : losses.mean(1);
}

}  // namespace ablate::engine
