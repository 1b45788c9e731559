#include "tests/native/start.h"

#include <gtest/gtest.h>

#include "server/engine/core/checkpoint.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/train/torch_backend.h"
#include "tests/parity/grid_run.h"

namespace ablate::engine {

Start StartOf(const RunConfig& config, const ParameterLayout& layout) {
  return {RandomParameters(config.model, layout, config.seed), RandomBuffers(layout, config.seed)};
}

std::vector<float> FloatsOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor host = tensor.to(at::kFloat).contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

std::unique_ptr<Backend> TorchOf(RunConfig config, Precision precision, const Start& start) {
  config.precision = precision;
  auto backend = MakeTorchBackend(config);
  EXPECT_TRUE(backend.ok()) << backend.status();
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, precision);
  const at::Tensor buffers = start.buffers.defined() ? start.buffers.to(options) : at::Tensor();
  SetState(backend->get(), config.training, {start.values.to(options), buffers, {}});
  return *std::move(backend);
}

std::unique_ptr<Backend> NativeOf(const RunConfig& config, const Start& start,
                                  const native::Kernels& kernels) {
  return native::MakeNativeBackend(
      config, {FloatsOf(start.values), FloatsOf(start.buffers), nullptr}, kernels);
}

std::string Describe(const GridCase& grid, const RunConfig& config) {
  return grid.name + " " + ModelJson(config.model) + " " +
         std::string(NameOf(config.training.rule));
}

}  // namespace ablate::engine
