// The one place where LibTorch's exceptions become a Status: the engine's public functions run
// inside it.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_BOUNDARY_H_
#define ABLATE_SERVER_ENGINE_TRAIN_BOUNDARY_H_

#include <utility>

#include "absl/status/status.h"

namespace ablate::engine {

// The Status of the exception that is being handled: RESOURCE_EXHAUSTED when memory ran out,
// UNAVAILABLE when the device is lost, INTERNAL otherwise. Call it from a catch block only.
absl::Status StatusOfCurrentException();

// What `function` returns (a Status or StatusOr), or the Status of what it threw.
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
