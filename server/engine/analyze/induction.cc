#include "server/engine/analyze/computation.h"

namespace ablate::engine {

MadeComputation Compute(const InductionOptions&, const AnalysisContext&) {
  return absl::UnimplementedError("induction");
}

}  // namespace ablate::engine
