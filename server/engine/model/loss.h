// Cross entropy of logits, per token and per run.
#ifndef ABLATE_SERVER_ENGINE_MODEL_LOSS_H_
#define ABLATE_SERVER_ENGINE_MODEL_LOSS_H_

#include <ATen/ATen.h>

#include "server/engine/model/batch.h"

namespace ablate::engine {

// logits [R, N, V], targets [R, N] → −ln p(target), in nats, [R, N]; 0 where a target is ignored.
at::Tensor TokenLosses(const at::Tensor& logits, const StackBatch& batch);

// The mean over each run's counted targets, [R].
at::Tensor RunLosses(const at::Tensor& logits, const StackBatch& batch);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_LOSS_H_
