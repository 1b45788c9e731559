// Builds prefix-shared batches: short sequences of one length, one SIMD lane each, that share the
// columns of equal beginnings. A model that doesn't look ahead computes the same for equal
// beginnings; for held-out names a column serves almost two sequences.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_STRIPS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_STRIPS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/native/columns.h"

namespace ablate::engine::native {

// Returns true if the held-out loss of a batch is cheaper with shared prefixes: many sequences of
// one length below a vector's, with a target at every position.
bool FitsStrips(const ModelConfig& config, const TokenBatch& batch);

// Cuts the rows of a batch that FitsStrips into groups of about `together` columns.
std::vector<Columns> CutIntoStrips(const ModelConfig& config, const TokenBatch& batch,
                                   int64_t together);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_STRIPS_H_
