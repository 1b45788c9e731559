#include "server/engine/analyze/computation.h"

namespace ablate::engine {

MadeComputation Compute(const LogitLensOptions&, const AnalysisContext&) {
  return absl::UnimplementedError("logit_lens");
}

}  // namespace ablate::engine
