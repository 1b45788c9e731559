// Makes runs of the grid's cases: their first parameters, and their files for reference.py.
#ifndef ABLATE_TESTS_PARITY_GRID_RUN_H_
#define ABLATE_TESTS_PARITY_GRID_RUN_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/layout.h"
#include "server/engine/train/backend.h"
#include "tests/parity/exchange.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

// The run of a case as the trainers that are compared with PyTorch are given it.
RunConfig ComparedRun(const GridCase& grid);

// Random parameters [P] in which no gain is 1 and no shift 0.
at::Tensor RandomParameters(ModelConfig model, const ParameterLayout& layout, uint32_t seed);

// Feedback three times as large as it is drawn, and running variances that are not 1: all of it is
// to be seen in gradients and scores. Undefined if the layout has no buffers.
at::Tensor RandomBuffers(const ParameterLayout& layout, uint32_t seed);

// A run's tensors on the CPU, flat as the layout orders them, in the type of its backend.
struct RunState {
  at::Tensor values;   // [P]
  at::Tensor buffers;  // undefined if there are none
  TensorMap slots;     // by name, [P] each; a missing average is the values, others are 0
};

void SetState(Backend* backend, const TrainingConfig& training, const RunState& state);

// The learning rate of an update.
double RateOf(const GridCase& grid, uint32_t step);

// Writes FOLDER/NAME.case.safetensors, of the compared run. `step` is the update that is
// compared where only one is.
void WriteGridCase(const std::string& folder, const GridCase& grid, uint32_t step);

// The bytes of a contiguous tensor, which must outlive them.
absl::string_view BytesOf(const at::Tensor& tensor);

// Parameters or buffers of `flat` by PREFIX and their names.
template <typename Info>
TensorMap ByName(const std::vector<Info>& infos, const at::Tensor& flat,
                 const std::string& prefix) {
  TensorMap named;
  for (const Info& info : infos) {
    named[prefix + info.name] = flat.narrow(0, info.offset, info.size).view(info.shape).clone();
  }
  return named;
}

// Scores of a batch without those behind a row's end, which hold whatever padding gives.
at::Tensor RealPositions(const GridCase& grid, const at::Tensor& logits);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_GRID_RUN_H_
