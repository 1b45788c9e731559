// How a run of the native backend begins, and what of it LibTorch computes.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_NATIVE_START_H_
#define ABLATE_SERVER_ENGINE_TRAIN_NATIVE_START_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/train/backend.h"

namespace ablate::engine {

// The backend of a run that the native trainer trains (native/supports.h), with the initial
// parameters that the reference backend has. What a run records of its gradients is computed by
// LibTorch: it is asked for seldom, and an alignment wants exact gradients beside the rule's.
absl::StatusOr<std::unique_ptr<Backend>> MakeNativeBackend(const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_NATIVE_START_H_
