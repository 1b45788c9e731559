// Measures which labels of words can be read linearly from each depth.
#include "absl/status/status.h"
#include "server/engine/analyze/computation.h"

namespace ablate::engine {

MadeComputation Compute(const ProbeOptions&, const AnalysisContext&) {
  return absl::UnimplementedError("probe");
}

}  // namespace ablate::engine
