#include "server/engine/torch/train/native_start.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "server/engine/core/layout.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/init.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/train/boundary.h"
#include "server/engine/torch/train/recorder.h"

namespace ablate::engine {
namespace {

std::vector<float> FloatsOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor whole = tensor.contiguous();
  return {whole.const_data_ptr<float>(), whole.const_data_ptr<float>() + whole.numel()};
}

// Returns a copy; undefined if there are no values.
at::Tensor TensorOf(absl::Span<const float> values) {
  if (values.empty()) return {};
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

native::GradientRecorder RecorderOf(const RunConfig& config, const ParameterLayout& layout) {
  return [config, layout](absl::Span<const float> values, absl::Span<const float> buffers,
                          const TokenBatch& batch) {
    return AtBoundary([&]() -> absl::StatusOr<std::vector<RecordedValue>> {
      const at::TensorOptions options = TensorOptionsOf(at::kCPU, config.precision);
      return RecordGradients(config, layout, TensorOf(values), TensorOf(buffers),
                             TensorsOf(batch, options));
    });
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeNativeBackend(const RunConfig& config) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    native::NativeStart start;
    start.values = FloatsOf(InitialParameters(config.model, layout, config.seed));
    start.buffers = FloatsOf(InitialBuffers(layout, config.seed));
    start.record = RecorderOf(config, layout);
    return native::MakeNativeBackend(config, std::move(start));
  });
}

}  // namespace ablate::engine
