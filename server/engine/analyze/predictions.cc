#include "server/engine/analyze/computation.h"

namespace ablate::engine {

MadeComputation Compute(const PredictionsOptions&, const AnalysisContext&) {
  return absl::UnimplementedError("predictions");
}

}  // namespace ablate::engine
