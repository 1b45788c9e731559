// The backend of small models on a CPU: explicit forward and backward passes over columns of
// tokens, by kernels that are chosen for the machine. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_NATIVE_BACKEND_H_
#define ABLATE_SERVER_ENGINE_NATIVE_NATIVE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/native/kernels.h"
#include "server/engine/train/backend.h"

namespace ablate::engine::native {

// What is recorded of a run's gradients, of its parameters and buffers now.
using GradientRecorder = absl::AnyInvocable<absl::StatusOr<std::vector<RecordedValue>>(
    absl::Span<const float> values, absl::Span<const float> buffers, const TokenBatch& batch)>;

struct NativeStart {
  std::vector<float> values;  // as the layout orders them
  std::vector<float> buffers;
  GradientRecorder record;
};

// What bits depend on beside a run: "native, fused", or the name of a target that does not fuse.
std::string Environment(const Kernels& kernels);

// The backend of one run that the native trainer trains (supports.h).
std::unique_ptr<Backend> MakeNativeBackend(const RunConfig& config, NativeStart start,
                                           const Kernels& kernels = BestKernels());

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_NATIVE_BACKEND_H_
