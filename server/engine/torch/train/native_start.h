// Starts a run of the native backend with the help of LibTorch.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_NATIVE_START_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_NATIVE_START_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"

namespace ablate::engine {

// Creates the backend of a run that the native trainer supports (core/supports.h), with the same
// initial parameters as the reference backend. LibTorch computes the recorded gradient metrics:
// they are rare, and an alignment needs the exact gradients in addition to the rule's.
absl::StatusOr<std::unique_ptr<Backend>> MakeNativeBackend(const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_NATIVE_START_H_
