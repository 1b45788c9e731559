// Measures how the loss grows when words are replaced or embeddings are perturbed.
#include "absl/status/status.h"
#include "server/engine/analyze/computation.h"

namespace ablate::engine {

MadeComputation Compute(const RobustnessOptions&, const AnalysisContext&) {
  return absl::UnimplementedError("robustness");
}

}  // namespace ablate::engine
