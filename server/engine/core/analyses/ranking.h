// Ranks tokens by their logits. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_RANKING_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_RANKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace ablate::engine {

// Returns the `count` tokens of the largest logits, largest first; ties are in order of id. Logits
// are finite; `count` is at most their number.
std::vector<uint32_t> MostLikely(absl::Span<const double> logits, size_t count);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_RANKING_H_
