#include "server/engine/torch/model/batch.h"

#include <algorithm>
#include <vector>

namespace ablate::engine {
namespace {

at::Tensor CopyOf(const std::vector<int64_t>& numbers) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

}  // namespace

BatchTensors TensorsOf(const TokenBatch& batch, at::TensorOptions options) {
  const at::Device device = options.device();
  BatchTensors tensors;
  tensors.rows = batch.rows;
  tensors.length = batch.length;
  tensors.real_positions = static_cast<int64_t>(batch.tokens());
  tensors.tokens = CopyOf(batch.inputs).to(device);
  at::Tensor targets = CopyOf(batch.targets);
  if (std::count(batch.targets.begin(), batch.targets.end(), TokenBatch::kIgnored) > 0) {
    const at::Tensor counted = targets.ne(TokenBatch::kIgnored);
    targets.masked_fill_(counted.logical_not(), 0);
    tensors.counted = counted.to(options);
  }
  tensors.targets = targets.to(device);
  if (!batch.uniform()) tensors.lengths = CopyOf(batch.lengths).to(device);
  return tensors;
}

}  // namespace ablate::engine
