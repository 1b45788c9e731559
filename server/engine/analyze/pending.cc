// Kinds that are still being written; gone before this lands.
#include "server/engine/analyze/computation.h"

namespace ablate::engine {
#define PENDING(Options)                                     \
  MadeComputation Compute(const Options&, const Material&) { \
    return absl::UnimplementedError(#Options);               \
  }
PENDING(CkaOptions)
PENDING(ActivationsOptions)
PENDING(WeightsOptions)
PENDING(CaptureOptions)
PENDING(LossLandscapeOptions)
PENDING(HessianOptions)
}  // namespace ablate::engine
