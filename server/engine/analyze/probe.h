// Computes probes with limits that tests can set.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_PROBE_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_PROBE_H_

#include <cstdint>

#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/logistic.h"
#include "server/engine/core/analyses/probe_words.h"

namespace ablate::engine {

struct ProbeLimits {
  uint64_t feature_bytes = kMostFeatureBytes;  // of the depths that a pass reads, at least one
  double piece_operations = 4e9;               // of the steps of a piece, in float64; at least one
  int64_t steps = kMostLogisticSteps;          // of a fit
};

// As Compute.
MadeComputation MakeProbe(const ProbeOptions& options, const AnalysisContext& analysis,
                          const ProbeLimits& limits);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_PROBE_H_
