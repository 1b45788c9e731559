// Kinds that are still being written; gone before this lands.
#include "server/engine/analyze/computation.h"

namespace ablate::engine {
MadeComputation Compute(const AttentionOptions&, const Material&) {
  return absl::UnimplementedError("attention");
}
}  // namespace ablate::engine
