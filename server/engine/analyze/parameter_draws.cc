#include "server/engine/analyze/parameter_draws.h"

#include <ATen/Dispatch.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/large_vectors.h"

namespace ablate::engine {
namespace {

// Calls `draw` with each tensor's seed and its part of the vector, which it fills.
template <typename Draw>
at::Tensor DrawByTensor(const AnalysisContext& analysis, const ParameterLayout& layout,
                        absl::string_view name, at::TensorOptions options, const Draw& draw) {
  const at::Tensor drawn = at::empty({layout.size}, options.device(at::kCPU));
  for (const ParameterInfo& parameter : layout.parameters) {
    draw(DrawSeed(analysis, absl::StrCat(name, "/", parameter.name)),
         drawn.narrow(0, parameter.offset, parameter.size));
  }
  return drawn.to(options.device());
}

// Returns the norms of the rows of x [rows, n] in float64, [rows, 1], without a copy of it.
at::Tensor RowNorms(const at::Tensor& x) {
  const at::TensorOptions exact = x.options().dtype(at::kDouble);
  if (x.size(0) == 1) return at::full({1, 1}, NormOf(x), exact);
  const at::Tensor norms = at::empty({x.size(0), 1}, exact);
  ForEachPart(x.size(0), std::max<int64_t>(LargePartOf(x) / x.size(1), 1),
              [&](int64_t first, int64_t count) {
                const at::Tensor some = x.narrow(0, first, count).to(at::kDouble);
                norms.narrow(0, first, count).copy_((some * some).sum(1, true).sqrt_());
              });
  return norms;
}

// Divides a by its row norms, and multiplies it by those of b, or by 0 if either norm is 0. Both
// are [rows, n].
void ScaleRows(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor own = RowNorms(a);
  const at::Tensor factors = (RowNorms(b) / own).masked_fill(own.eq(0), 0);
  a.mul_(factors.to(a.scalar_type()));
}

}  // namespace

at::Tensor NormalVector(const AnalysisContext& analysis, const ParameterLayout& layout,
                        absl::string_view name, at::TensorOptions options) {
  return DrawByTensor(analysis, layout, name, options, FillWithNormals);
}

at::Tensor SignVector(const AnalysisContext& analysis, const ParameterLayout& layout,
                      absl::string_view name, at::TensorOptions options) {
  return DrawByTensor(analysis, layout, name, options, [](uint64_t seed, const at::Tensor& part) {
    AT_DISPATCH_FLOATING_TYPES(part.scalar_type(), "SignVector", [&] {
      scalar_t* const signs = part.mutable_data_ptr<scalar_t>();
      ForEachPart(part.size(0), LargePartOf(part), [&](int64_t first, int64_t count) {
        const at::Tensor uniforms = UniformSequence(seed, first, count);
        std::transform(uniforms.const_data_ptr<double>(), uniforms.const_data_ptr<double>() + count,
                       signs + first,
                       [](double u) { return static_cast<scalar_t>(2 * (u >= 0) - 1); });
      });
    });
  });
}

at::Tensor ScaledDirection(Direction direction, const ParameterLayout& layout,
                           const at::Tensor& values, at::Tensor drawn) {
  if (direction == Direction::kRaw) return drawn;
  if (direction == Direction::kUnit) {
    ScaleRows(drawn.unsqueeze(0), at::ones({1, 1}, drawn.options()));
    return drawn;
  }
  for (const ParameterInfo& parameter : layout.parameters) {
    const bool is_matrix = parameter.shape.size() >= 2;
    const int64_t rows = is_matrix && direction == Direction::kFilter ? parameter.shape.front() : 1;
    const auto part = [&](const at::Tensor& of) {
      return of.narrow(0, parameter.offset, parameter.size).view({rows, -1});
    };
    if (is_matrix) {
      ScaleRows(part(drawn), part(values));
    } else {
      part(drawn).zero_();
    }
  }
  return drawn;
}

}  // namespace ablate::engine
