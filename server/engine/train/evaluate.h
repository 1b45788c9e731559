// Held-out evaluation of one run.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_EVALUATE_H_
#define ABLATE_SERVER_ENGINE_TRAIN_EVALUATE_H_

#include <vector>

#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// Both are averages over tokens, never averages of batch averages.
struct Evaluation {
  double loss = 0;  // nats a token
  double accuracy =
      0;  // share of tokens whose score is the highest, 0…1; NaN if loss is not finite
};

// `parameters` [1, …] on `batches` of one run each, at least one.
Evaluation Evaluate(const ModelConfig& config, const ModelParameters& parameters,
                    const std::vector<StackBatch>& batches);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_EVALUATE_H_
