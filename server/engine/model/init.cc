// Draws initial values with the very fill functions that PyTorch's modules use, so that the bits
// are theirs.
#include "server/engine/model/init.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

enum class Distribution { kZero, kOne, kNormal, kUniform };

struct Draw {
  Distribution distribution = Distribution::kZero;
  double scale = 0;          // standard deviation, or half the uniform range
  bool then_zeroed = false;  // drawn, because PyTorch's generator moves on, and set to 0 after
};

struct LinearFans {
  double in = 0;
  double out = 0;
};

// The bounds are computed operation by operation as torch.nn.init does, to round as it does.
double KaimingBound(double fan_in) {
  const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
  return std::sqrt(3.0) * (gain / std::sqrt(fan_in));
}

double XavierBound(const LinearFans& fans) {
  return std::sqrt(3.0) * std::sqrt(2.0 / (fans.in + fans.out));
}

Draw WeightDraw(absl::string_view name, const LinearFans& fans, InitKind kind) {
  const bool xavier = kind == InitKind::kXavier || (kind == InitKind::kPytorchMha &&
                                                    absl::EndsWith(name, ".attention.qkv.weight"));
  if (kind == InitKind::kGpt2) return {Distribution::kNormal, 0.02};
  return {Distribution::kUniform, xavier ? XavierBound(fans) : KaimingBound(fans.in)};
}

Draw BiasDraw(absl::string_view name, const LinearFans& fans, InitKind kind) {
  const bool drawn = kind == InitKind::kPytorch || kind == InitKind::kPytorchMha;
  const bool fused = kind == InitKind::kPytorchMha && absl::EndsWith(name, ".attention.qkv.bias");
  if (!drawn || fused) return {Distribution::kZero};
  return {Distribution::kUniform, 1 / std::sqrt(fans.in),
          kind == InitKind::kPytorchMha && absl::EndsWith(name, ".attention.projection.bias")};
}

Draw DrawOf(absl::string_view name, const LinearFans& fans, InitKind kind) {
  const bool weight = absl::EndsWith(name, ".weight");
  if (absl::StrContains(name, "norm.")) return {weight ? Distribution::kOne : Distribution::kZero};
  if (absl::EndsWith(name, "_embedding.weight")) {
    return {Distribution::kNormal, kind == InitKind::kGpt2 ? 0.02 : 1.0};
  }
  return weight ? WeightDraw(name, fans, kind) : BiasDraw(name, fans, kind);
}

void Fill(at::Tensor& tensor, const Draw& draw, const at::Generator& generator) {
  switch (draw.distribution) {
    case Distribution::kZero:
      break;
    case Distribution::kOne:
      tensor.fill_(1);
      break;
    case Distribution::kNormal:
      tensor.normal_(0, draw.scale, generator);
      break;
    case Distribution::kUniform:
      tensor.uniform_(-draw.scale, draw.scale, generator);
      break;
  }
  if (draw.then_zeroed) tensor.zero_();
}

// Layout indices in the order in which PyTorch's modules draw.
std::vector<size_t> DrawOrder(const ParameterLayout& layout, InitKind kind) {
  const size_t count = layout.parameters.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (kind != InitKind::kPytorchMha) return order;
  const auto skip = [&](size_t i, absl::string_view part) {
    while (i < count && absl::StrContains(layout.parameters[i].name, part)) ++i;
    return i;
  };
  const auto at = [&](size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  for (size_t i = 0; i < count; ++i) {
    const size_t projection = skip(i, ".attention.qkv.");
    if (projection == i) continue;
    const size_t end = skip(projection, ".attention.projection.");
    std::rotate(at(i), at(projection), at(end));
    i = end - 1;
  }
  return order;
}

// Fans of every linear by its name without ".weight".
std::unordered_map<std::string, LinearFans> FansOf(const ParameterLayout& layout) {
  std::unordered_map<std::string, LinearFans> fans;
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.shape.size() != 2) continue;
    fans[std::string(absl::StripSuffix(parameter.name, ".weight"))] = {
        static_cast<double>(parameter.shape[1]), static_cast<double>(parameter.shape[0])};
  }
  return fans;
}

}  // namespace

at::Tensor InitialParameters(const ModelConfig& model, const ParameterLayout& layout,
                             uint32_t seed) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(at::kCPU);
  at::Tensor flat = at::zeros({layout.size}, options);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto fans = FansOf(layout);
  for (const size_t i : DrawOrder(layout, model.init.kind)) {
    const ParameterInfo& parameter = layout.parameters[i];
    const std::string module(
        absl::StripSuffix(absl::StripSuffix(parameter.name, ".weight"), ".bias"));
    const auto found = fans.find(module);
    if (model.init.streams == InitStreams::kByName) {
      generator =
          at::make_generator<at::CPUGeneratorImpl>(StreamSeed(seed, "init/" + parameter.name));
    }
    at::Tensor value = at::zeros(parameter.shape, options);
    Fill(
        value,
        DrawOf(parameter.name, found == fans.end() ? LinearFans() : found->second, model.init.kind),
        generator);
    flat.narrow(0, parameter.offset, parameter.size).copy_(value.view(-1));
  }
  return flat;
}

}  // namespace ablate::engine
