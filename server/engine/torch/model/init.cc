// Draws initial values with the same fill functions as PyTorch's modules, so that the bits are
// equal.
#include "server/engine/torch/model/init.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "server/engine/core/data/random.h"
#include "server/engine/core/initial_draw.h"

namespace ablate::engine {
namespace {

void Fill(at::Tensor& tensor, const InitialDraw& draw, const at::Generator& generator) {
  switch (draw.distribution) {
    case Distribution::kConstant:
      tensor.fill_(draw.scale);
      break;
    case Distribution::kNormal:
      tensor.normal_(0, draw.scale, generator);
      break;
    case Distribution::kUniform:
      tensor.uniform_(-draw.scale, draw.scale, generator);
      break;
  }
  if (draw.then_zeroed) tensor.zero_();
  if (draw.factor != 1) {
    tensor.narrow(0, draw.first_row, tensor.size(0) - draw.first_row).mul_(draw.factor);
  }
}

// Returns layout indices in the order in which PyTorch's modules draw: the order of the layout,
// except that nn.MultiheadAttention draws its projection first.
std::vector<size_t> DrawOrder(const ParameterLayout& layout, InitKind kind) {
  std::vector<size_t> order(layout.parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (kind != InitKind::kPytorchMha) return order;
  std::map<int, size_t> attention;  // by block, the index of its first linear
  // Returns the sort key of a parameter: a position in the layout, then the order there.
  const auto place = [&](size_t i) {
    const ParameterInfo& parameter = layout.parameters[i];
    const bool projection = parameter.module == Module::kProjection;
    if (!projection && parameter.module != Module::kQkv) return std::pair(i, 0);
    return std::pair(attention.emplace(parameter.block, i).first->second, projection ? 0 : 1);
  };
  std::vector<std::pair<size_t, int>> places;
  for (const size_t i : order) places.push_back(place(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return places[a] < places[b]; });
  return order;
}

}  // namespace

at::Tensor InitialParameters(const ModelConfig& model, const ParameterLayout& layout,
                             uint32_t seed) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(at::kCPU);
  at::Tensor flat = at::zeros({layout.size}, options);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const size_t i : DrawOrder(layout, model.init.kind)) {
    const ParameterInfo& parameter = layout.parameters[i];
    if (model.init.streams == InitStreams::kByName) {
      generator =
          at::make_generator<at::CPUGeneratorImpl>(StreamSeed(seed, "init/" + parameter.name));
    }
    at::Tensor value = at::zeros(parameter.shape, options);
    Fill(value, DrawOf(parameter, model), generator);
    flat.narrow(0, parameter.offset, parameter.size).copy_(value.view(-1));
  }
  return flat;
}

at::Tensor InitialBuffers(const ParameterLayout& layout, uint32_t seed) {
  if (layout.buffer_size == 0) return {};
  const at::Tensor flat = at::zeros({layout.buffer_size}, at::kFloat);
  for (const BufferInfo& buffer : layout.buffers) {
    at::Tensor value = flat.narrow(0, buffer.offset, buffer.size);
    const auto generator =
        at::make_generator<at::CPUGeneratorImpl>(StreamSeed(seed, "feedback/" + buffer.name));
    switch (buffer.role) {
      case BufferRole::kRunningMean:
        break;
      case BufferRole::kRunningVariance:
        value.fill_(1);
        break;
      case BufferRole::kFeedback:
        value.normal_(0, 0.02, generator);
        break;
    }
  }
  return flat;
}

}  // namespace ablate::engine
