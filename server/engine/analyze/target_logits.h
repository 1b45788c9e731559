// Selects the predictions of a batch that count, and visits their logits a few at a time, so that
// the float64 copies of a large vocabulary's logits stay small.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_TARGET_LOGITS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_TARGET_LOGITS_H_

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

#include "server/engine/torch/model/batch.h"

namespace ablate::engine {

// The n targets of a batch that count, in its order.
struct CountedTargets {
  at::Tensor places;     // their indices among the batch's N targets, [n] int64
  at::Tensor targets;    // [n] int64
  at::Tensor rows;       // the sequence of each in the batch, [n] int64
  at::Tensor positions;  // the position in its sequence whose prediction it is, [n] int64
};
CountedTargets CountedTargetsOf(const BatchTensors& batch);
// Returns them in the host's memory.
CountedTargets OnHost(const CountedTargets& counted);

// Returns the features at the predictions that count, [n, d]. `x` has all positions [B·T, d], or
// only those of the batch's targets [N, d].
at::Tensor AtCounted(const at::Tensor& x, const BatchTensors& batch, const CountedTargets& counted);

// Largest number of logits in a chunk: 32 MB in float64.
inline constexpr int64_t kLogitsInChunk = int64_t{1} << 22;

// Calls visit(first, count) for chunks of `targets` targets, in order.
template <typename Visit>
void VisitTargetChunks(int64_t targets, int64_t vocabulary, const Visit& visit) {
  const int64_t most = std::max<int64_t>(1, kLogitsInChunk / vocabulary);
  for (int64_t first = 0; first < targets; first += most) {
    visit(first, std::min(most, targets - first));
  }
}

// Returns ln p of each token, [n, V] float64, from logits [n, V].
at::Tensor LogProbabilities(const at::Tensor& logits);
// Returns −ln p of the targets [n] in nats, [n] float64.
at::Tensor LossesOf(const at::Tensor& log_probabilities, const at::Tensor& targets);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_TARGET_LOGITS_H_
