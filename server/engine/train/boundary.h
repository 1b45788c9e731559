// Converts LibTorch's exceptions to a Status. The engine's public functions run inside AtBoundary.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_BOUNDARY_H_
#define ABLATE_SERVER_ENGINE_TRAIN_BOUNDARY_H_

#include <utility>

#include "absl/status/status.h"

namespace ablate::engine {

// Returns the Status of the exception that is being handled: RESOURCE_EXHAUSTED if out of memory,
// UNAVAILABLE if the device is lost, INTERNAL otherwise. Call it only in a catch block.
absl::Status StatusOfCurrentException();

// Returns true if that Status would be RESOURCE_EXHAUSTED. Call it only in a catch block.
bool IsOutOfMemory();

// Returns the result of `function` (a Status or StatusOr), or the Status of its exception.
template <typename Function>
auto AtBoundary(Function&& function) -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return StatusOfCurrentException();
  }
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_BOUNDARY_H_
