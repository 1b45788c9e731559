// Computes CKA with a memory limit that tests can set.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_CKA_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_CKA_H_

#include <cstdint>

#include "server/engine/analyze/computation.h"

namespace ablate::engine {

// As Compute. Uses sums over all pairs if these take at most `most_bytes`. Otherwise it uses
// minibatches and gathers `most_bytes` of them at a time, but at least one.
MadeComputation MakeCka(const CkaOptions& options, const AnalysisContext& analysis,
                        uint64_t most_bytes);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_CKA_H_
