// Separates the engine from its callers: LibTorch's exceptions become a Status, and subnormal
// numbers are 0. The engine's public functions run inside AtBoundary.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_BOUNDARY_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_BOUNDARY_H_

#include <utility>

#include "absl/status/status.h"
#include "server/engine/flush_subnormals.h"

namespace ablate::engine {

// Returns the Status of the exception that is being handled: RESOURCE_EXHAUSTED if out of memory,
// UNAVAILABLE if the device is lost, INTERNAL otherwise. Call it only in a catch block.
absl::Status StatusOfCurrentException();

// Returns true if that Status would be RESOURCE_EXHAUSTED. Call it only in a catch block.
bool IsOutOfMemory();

// Returns the result of `function` (a Status or StatusOr), which computes with FlushSubnormals, or
// the Status of its exception.
template <typename Function>
auto AtBoundary(Function&& function) -> decltype(function()) {
  const FlushSubnormals flush;
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return StatusOfCurrentException();
  }
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_BOUNDARY_H_
