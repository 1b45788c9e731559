// A setting trained by the native backend and, in float32 and in float64, by the reference backend.
#ifndef ABLATE_TESTS_NATIVE_THREE_WAYS_H_
#define ABLATE_TESTS_NATIVE_THREE_WAYS_H_

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/layout.h"
#include "server/engine/native/kernels.h"
#include "server/engine/train/backend.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

struct Start {
  at::Tensor values;   // [P]
  at::Tensor buffers;  // undefined where there are none
};

// Random parameters in which no gain is 1 and no shift 0.
Start StartOf(const RunConfig& config, const ParameterLayout& layout);

// None of an undefined tensor.
std::vector<float> FloatsOf(const at::Tensor& tensor);

std::unique_ptr<Backend> TorchOf(RunConfig config, Precision precision, const Start& start);
std::unique_ptr<Backend> NativeOf(const RunConfig& config, const Start& start,
                                  const native::Kernels& kernels);

// What a backend has after the updates, in float64.
struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  at::Tensor values;  // [P]
  at::Tensor buffers;
  at::Tensor first_slot;
  double evaluation = 0;
  double average_evaluation = 0;  // of the average of the parameters, if there is one
};

Trained Train(Backend& backend, const RunConfig& config, const std::vector<TokenBatch>& batches);

struct ThreeWays {
  Trained exact;
  Trained reference;
  Trained native;
};

ThreeWays TrainThreeWays(const RunConfig& config, const ParameterLayout& layout,
                         const std::vector<TokenBatch>& batches);

// How native errors compare with the reference's own.
struct Tally {
  int tensors = 0;
  int beyond = 0;            // native errors of more than twice the reference's
  int reference_beyond = 0;  // the other way round
  double log_ratios = 0;
  double worst = 0;
  std::string where;

  void Add(const Tally& other);
  double MeanRatio() const;
};

struct Compared {
  const at::Tensor& native;
  const at::Tensor& reference;
  const at::Tensor& exact;
};

// By tensor, each judged by its own norm. Errors below `floor` of it are as good as none.
Tally Compare(const Compared& of, const RunConfig& config, const ParameterLayout& layout,
              double floor);

// One update by plain SGD leaves the gradient in its momentum's slot.
RunConfig ForGradient(RunConfig config);

std::string Describe(const GridCase& grid, const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_NATIVE_THREE_WAYS_H_
