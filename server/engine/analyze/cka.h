// Similarity of representations with a limit of memory that tests can set.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_CKA_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_CKA_H_

#include <cstdint>

#include "server/engine/analyze/computation.h"

namespace ablate::engine {

// As Compute: by sums of all pairs where these take at most so many bytes, else by minibatches of
// which so many bytes are gathered at a time, but one at least.
MadeComputation MakeCka(const CkaOptions& options, const Material& material, uint64_t most_bytes);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_CKA_H_
