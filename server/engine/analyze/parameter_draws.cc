#include "server/engine/analyze/parameter_draws.h"

#include "absl/strings/str_cat.h"

namespace ablate::engine {
namespace {

// Calls `draw` with each tensor's seed and number of elements.
template <typename Draw>
at::Tensor DrawByTensor(const Material& material, const ParameterLayout& layout,
                        absl::string_view name, const Draw& draw) {
  const at::Tensor drawn = at::empty({layout.size}, at::kDouble);
  for (const ParameterInfo& parameter : layout.parameters) {
    const uint64_t seed = DrawSeed(material, absl::StrCat(name, "/", parameter.name));
    drawn.narrow(0, parameter.offset, parameter.size).copy_(draw(seed, parameter.size));
  }
  return drawn;
}

// Returns a divided by its row norms, times the row norms of b; 0 if either norm is 0. Both are
// [rows, …].
at::Tensor WithNormsOf(const at::Tensor& a, const at::Tensor& b) {
  const auto norms = [](const at::Tensor& x) { return x.square().sum(-1, true).sqrt(); };
  const at::Tensor own = norms(a);
  return a * (norms(b) / own).masked_fill(own.eq(0), 0);
}

}  // namespace

at::Tensor NormalVector(const Material& material, const ParameterLayout& layout,
                        absl::string_view name) {
  return DrawByTensor(material, layout, name, NormalSequence);
}

at::Tensor SignVector(const Material& material, const ParameterLayout& layout,
                      absl::string_view name) {
  return DrawByTensor(material, layout, name, [](uint64_t seed, int64_t size) {
    return UniformSequence(seed, 0, size).ge(0).to(at::kDouble).mul_(2).sub_(1);
  });
}

at::Tensor ScaledDirection(Direction direction, const ParameterLayout& layout,
                           const at::Tensor& values, const at::Tensor& drawn) {
  if (direction == Direction::kRaw) return drawn;
  if (direction == Direction::kUnit) {
    return WithNormsOf(drawn, at::ones({1}, drawn.options()));
  }
  at::Tensor scaled = at::zeros_like(drawn);
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.shape.size() < 2) continue;
    const int64_t rows = direction == Direction::kFilter ? parameter.shape.front() : 1;
    const auto part = [&](const at::Tensor& of) {
      return of.narrow(0, parameter.offset, parameter.size).view({rows, -1});
    };
    part(scaled).copy_(WithNormsOf(part(drawn), part(values).to(at::kDouble)));
  }
  return scaled;
}

}  // namespace ablate::engine
