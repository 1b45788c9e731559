// Kinds that are still being written; gone before this lands.
#include "server/engine/analyze/computation.h"

namespace ablate::engine {
#define PENDING(Options)                                     \
  MadeComputation Compute(const Options&, const Material&) { \
    return absl::UnimplementedError(#Options);               \
  }
PENDING(LossLandscapeOptions)
PENDING(HessianOptions)
PENDING(GradientFlowOptions)
PENDING(GradientAlignmentOptions)
PENDING(NormJacobianOptions)
PENDING(NormStatisticsOptions)
PENDING(NormResponseOptions)
PENDING(AttentionOptions)
PENDING(RemoveOptions)
}  // namespace ablate::engine
