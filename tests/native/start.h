// Makes both backends of a setting, with the same random parameters.
#ifndef ABLATE_TESTS_NATIVE_START_H_
#define ABLATE_TESTS_NATIVE_START_H_

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/core/layout.h"
#include "server/engine/native/kernels.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

struct Start {
  at::Tensor values;   // [P]
  at::Tensor buffers;  // undefined if there are none
};

// Returns random parameters, in which no gain is 1 and no shift 0.
Start StartOf(const RunConfig& config, const ParameterLayout& layout);

// Returns an empty vector for an undefined tensor.
std::vector<float> FloatsOf(const at::Tensor& tensor);

std::unique_ptr<Backend> TorchOf(RunConfig config, Precision precision, const Start& start);
std::unique_ptr<Backend> NativeOf(const RunConfig& config, const Start& start,
                                  const native::Kernels& kernels);

std::string Describe(const GridCase& grid, const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_NATIVE_START_H_
