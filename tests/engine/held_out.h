// Returns everything that a source holds out, for tests.
#ifndef ABLATE_TESTS_ENGINE_HELD_OUT_H_
#define ABLATE_TESTS_ENGINE_HELD_OUT_H_

#include <vector>

#include "server/engine/core/data/batches.h"

namespace ablate::engine {

inline std::vector<TokenBatch> HeldOutOf(const BatchSource& source) {
  std::vector<TokenBatch> batches;
  for (size_t i = 0; i < source.HeldOutBatches(); ++i) batches.push_back(source.HeldOut(i));
  return batches;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_HELD_OUT_H_
