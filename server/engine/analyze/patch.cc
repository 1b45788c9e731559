#include "server/engine/analyze/computation.h"

namespace ablate::engine {

MadeComputation Compute(const PatchOptions&, const AnalysisContext&) {
  return absl::UnimplementedError("patch");
}

}  // namespace ablate::engine
