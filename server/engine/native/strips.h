// Short sequences of one length side by side, a lane of a vector each, and with one copy of what
// they have in common: a model that doesn't look ahead says the same of equal beginnings, and of
// names held out, a column serves almost two.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_STRIPS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_STRIPS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/native/columns.h"

namespace ablate::engine::native {

// Whether the held-out loss of a batch is cheaper in strips: many sequences, each shorter than a
// vector, of one length, of which every position is scored.
bool FitsStrips(const ModelConfig& config, const TokenBatch& batch);

// The rows of a batch that FitsStrips, cut into groups of about `together` columns.
std::vector<Columns> CutIntoStrips(const ModelConfig& config, const TokenBatch& batch,
                                   int64_t together);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_STRIPS_H_
