// Implements the backend for small models on a CPU: explicit forward and backward passes over
// columns of tokens, by kernels chosen for the machine. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_NATIVE_BACKEND_H_
#define ABLATE_SERVER_ENGINE_NATIVE_NATIVE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/native/kernels.h"

namespace ablate::engine::native {

// Returns a run's recorded gradient metrics, given its current parameters and buffers.
using GradientRecorder = absl::AnyInvocable<absl::StatusOr<std::vector<RecordedValue>>(
    absl::Span<const float> values, absl::Span<const float> buffers, const TokenBatch& batch)>;

// The initial state of a run's backend.
struct NativeStart {
  std::vector<float> values;  // in layout order
  std::vector<float> buffers;
  GradientRecorder record;
};

// Returns the environment that bits depend on: "native, fused", or the name of a target that
// doesn't fuse.
std::string Environment(const Kernels& kernels);

// Creates the backend of one run that the native trainer supports (supports.h).
std::unique_ptr<Backend> MakeNativeBackend(const RunConfig& config, NativeStart start,
                                           const Kernels& kernels = BestKernels());

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_NATIVE_BACKEND_H_
