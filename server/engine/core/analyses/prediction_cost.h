// Estimates the work of an analysis on the predictions of a model. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_PREDICTION_COST_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_PREDICTION_COST_H_

#include <cmath>
#include <cstdint>

#include "server/engine/config.h"

namespace ablate::engine {

// Returns an estimate of the targets among so many tokens.
inline double TargetsAmong(uint64_t tokens, const ModelConfig& model) {
  const auto each = static_cast<double>(tokens);
  return model.loss == LossPositions::kAll ? each : std::ceil(each / model.context);
}

// Returns the operations of exponentials and sums for the float64 probabilities of each token of
// the vocabulary.
inline double ProbabilityOperations(double targets, const ModelConfig& model) {
  return 25 * targets * model.vocabulary;
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_PREDICTION_COST_H_
