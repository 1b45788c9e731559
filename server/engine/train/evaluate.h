// Held-out evaluation of one run, batch by batch.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_EVALUATE_H_
#define ABLATE_SERVER_ENGINE_TRAIN_EVALUATE_H_

#include <cstddef>

#include "server/engine/config.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"

namespace ablate::engine {

// Both are averages over tokens, never averages of batch averages.
struct Evaluation {
  double loss = 0;      // nats a token
  double accuracy = 0;  // share of tokens whose score is the highest, 0…1; NaN if loss is not
                        // finite
};

// An evaluation that has come as far as some batch.
struct EvaluationSums {
  size_t batches = 0;
  double loss = 0;
  double hits = 0;
  double tokens = 0;
};

// Adds the next batch, of one run, under `parameters` [1, …].
void Evaluate(const ModelConfig& config, const ModelParameters& parameters, const StackBatch& batch,
              EvaluationSums* sums);

// Of at least one batch.
Evaluation ResultOf(const EvaluationSums& sums);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_EVALUATE_H_
