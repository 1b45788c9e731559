// Makes runs of the grid's cases: their initial parameters, and their files for reference.py.
#ifndef ABLATE_TESTS_PARITY_GRID_RUN_H_
#define ABLATE_TESTS_PARITY_GRID_RUN_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/core/backend.h"
#include "server/engine/core/layout.h"
#include "tests/parity/exchange.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

// Returns the run of a case for the trainers that are compared with PyTorch.
RunConfig ComparedRun(const GridCase& grid);

// Returns random parameters [P], in which no gain is 1 and no shift 0.
at::Tensor RandomParameters(ModelConfig model, const ParameterLayout& layout, uint32_t seed);

// Returns feedback three times as large as its initial distribution, and running variances other
// than 1, so that all of them affect gradients and logits. Undefined if the layout has no buffers.
at::Tensor RandomBuffers(const ParameterLayout& layout, uint32_t seed);

// A run's tensors on the CPU, in layout order, in the type of its backend.
struct RunState {
  at::Tensor values;   // [P]
  at::Tensor buffers;  // undefined if there are none
  TensorMap slots;     // by name, [P] each; missing EMA weights are the values, other missing slots
                       // are 0
};

void SetState(Backend* backend, const TrainingConfig& training, const RunState& state);

// Returns an update of a case; its batch is the case's.
UpdateRequest RequestOf(const GridCase& grid, uint32_t step);

// Writes FOLDER/NAME.case.safetensors, of the compared run. `step` is the compared update, if there
// is only one.
void WriteGridCase(const std::string& folder, const GridCase& grid, uint32_t step);

// Returns the bytes of a contiguous tensor, which must outlive them.
absl::string_view BytesOf(const at::Tensor& tensor);

// Returns the parameters or buffers in `flat`, by PREFIX and name.
template <typename Info>
TensorMap ByName(const std::vector<Info>& infos, const at::Tensor& flat,
                 const std::string& prefix) {
  TensorMap named;
  for (const Info& info : infos) {
    named[prefix + info.name] = flat.narrow(0, info.offset, info.size).view(info.shape).clone();
  }
  return named;
}

// Returns the logits of a batch without positions after a row's end, which are arbitrary.
at::Tensor RealPositions(const GridCase& grid, const at::Tensor& logits);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_GRID_RUN_H_
