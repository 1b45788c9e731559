#include "server/engine/analyze/target_logits.h"

#include "server/engine/analyze/analysis_context.h"
#include "server/engine/torch/model/attention.h"

namespace ablate::engine {

CountedTargets CountedTargetsOf(const BatchTensors& batch) {
  const int64_t all = batch.targets.numel();
  CountedTargets counted;
  counted.places = batch.counted.defined() ? batch.counted.nonzero().squeeze(1)
                                           : at::arange(all, batch.targets.options());
  counted.targets = batch.targets.index_select(0, counted.places);
  if (all == batch.rows * batch.length) {
    counted.rows = counted.places.floor_divide(batch.length);
    counted.positions = counted.places.remainder(batch.length);
  } else {
    counted.rows = counted.places;
    counted.positions = batch.lengths.defined() ? batch.lengths.index_select(0, counted.places) - 1
                                                : at::full_like(counted.places, batch.length - 1);
  }
  return counted;
}

CountedTargets OnHost(const CountedTargets& counted) {
  return {OnHost(counted.places), OnHost(counted.targets), OnHost(counted.rows),
          OnHost(counted.positions)};
}

at::Tensor AtCounted(const at::Tensor& x, const BatchTensors& batch,
                     const CountedTargets& counted) {
  const bool at_targets = x.size(0) == batch.targets.numel();
  const at::Tensor read =
      at_targets ? x : LastPositions(x, {batch.rows, batch.length, batch.lengths});
  return read.index_select(0, counted.places);
}

at::Tensor LogProbabilities(const at::Tensor& logits) {
  return logits.log_softmax(-1, at::kDouble);
}

at::Tensor LossesOf(const at::Tensor& log_probabilities, const at::Tensor& targets) {
  return -log_probabilities.gather(1, targets.unsqueeze(1)).squeeze(1);
}

}  // namespace ablate::engine
