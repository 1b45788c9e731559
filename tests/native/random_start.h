// Parameters of no special kind, which native and reference passes are both given.
#ifndef ABLATE_TESTS_NATIVE_RANDOM_START_H_
#define ABLATE_TESTS_NATIVE_RANDOM_START_H_

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/layout.h"
#include "server/engine/model/init.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

struct Start {
  at::Tensor values;   // [P]
  at::Tensor buffers;  // undefined where there are none
};

// Random parameters in which no gain is 1 and no shift 0.
inline Start StartOf(const RunConfig& config, const ParameterLayout& layout) {
  ModelConfig model = config.model;
  model.init = {InitKind::kXavier, InitStreams::kByName};
  const at::Tensor flat = InitialParameters(model, layout, config.seed);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(config.seed);
  const double deviation = 0.1 * std::min(1.0, std::sqrt(24.0 / model.width));
  const at::Tensor initial = InitialBuffers(layout, config.seed);
  return {0.5 * flat + at::empty_like(flat).normal_(0, deviation, generator),
          initial.defined() ? 3 * initial : initial};
}

inline std::vector<float> FloatsOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor host = tensor.to(at::kFloat).contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

inline RunConfig ConfigOf(const GridCase& grid) {
  RunConfig config;
  config.model = grid.model;
  config.training = grid.training;
  config.seed = 7;
  return config;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_NATIVE_RANDOM_START_H_
