// Kinds that are still being written; gone before this lands.
#include "server/engine/analyze/computation.h"

namespace ablate::engine {
#define PENDING(Options)                                     \
  MadeComputation Compute(const Options&, const Material&) { \
    return absl::UnimplementedError(#Options);               \
  }
PENDING(ActivationsOptions)
PENDING(WeightsOptions)
PENDING(AttentionOptions)
}  // namespace ablate::engine
