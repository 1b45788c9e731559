// Builds prefix-shared batches: up to kColumns short sequences of one length side by side, one SIMD
// lane each. If the model doesn't look ahead, it computes the same for equal beginnings, and these
// share columns; for held-out names a column serves almost two sequences.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_PREFIX_BATCHES_H_
#define ABLATE_SERVER_ENGINE_NATIVE_PREFIX_BATCHES_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/native/columns.h"

namespace ablate::engine::native {

// Returns true if the loss of a batch without gradients is cheaper in prefix-shared batches: more
// sequences than tokens in one, all of one length of at most kColumns, with a target at every
// position.
bool FitsPrefixBatches(const ModelConfig& config, const TokenBatch& batch);

// Cuts the rows of a batch that FitsPrefixBatches into groups of about `together` columns.
std::vector<Columns> CutIntoPrefixBatches(const ModelConfig& config, const TokenBatch& batch,
                                          int64_t together);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_PREFIX_BATCHES_H_
