#include "server/engine/analyze/lanczos.h"

#include <algorithm>
#include <cmath>

namespace ablate::engine {

LanczosStep StepOf(const at::Tensor& basis, at::Tensor product, int64_t elements) {
  // Columns of the basis at a time, so that each part is converted once for a subtraction and the
  // dot products after it.
  if (elements == 0) elements = LargePartOf(basis);
  const int64_t columns = std::max<int64_t>(elements / basis.size(0), 1);
  LanczosStep step;
  at::Tensor along;  // [j], of the parts that are subtracted next
  for (int pass = 0; pass < 3; ++pass) {
    const at::Tensor left = at::zeros({basis.size(0)}, basis.options().dtype(at::kDouble));
    double squares = 0;
    ForEachPart(basis.size(1), columns, [&](int64_t first, int64_t count) {
      const at::Tensor some = basis.narrow(1, first, count).to(at::kDouble);
      const at::Tensor part = product.narrow(0, first, count);
      const at::Tensor rest = part.to(at::kDouble);
      if (pass > 0) part.copy_(rest.addmv_(some.t(), along, 1, -1));
      if (pass < 2) left.addmv_(some, rest);
      if (pass == 2) squares += rest.dot(rest).item<double>();
    });
    along = left;
    if (pass == 0) step.alpha = along[-1].item<double>();
    step.beta = std::sqrt(squares);
  }
  step.next = product.div_(step.beta);
  return step;
}

RitzValues RitzValuesOf(absl::Span<const double> alphas, absl::Span<const double> betas) {
  const auto steps = static_cast<int64_t>(alphas.size());
  const at::Tensor matrix = at::zeros({steps, steps}, at::kDouble);
  double* const entries = matrix.mutable_data_ptr<double>();
  for (int64_t j = 0; j < steps; ++j) {
    entries[j * steps + j] = alphas[static_cast<size_t>(j)];
    if (j + 1 == steps) break;
    const double beside = betas[static_cast<size_t>(j)];
    entries[j * steps + j + 1] = entries[(j + 1) * steps + j] = beside;
  }
  const auto [values, vectors] = at::linalg_eigh(matrix);
  RitzValues ritz;
  for (int64_t i = 0; i < steps; ++i) {
    ritz.values.push_back(values[i].item<double>());
    ritz.weights.push_back(std::pow(vectors[0][i].item<double>(), 2));
    ritz.residuals.push_back(betas.back() * std::abs(vectors[steps - 1][i].item<double>()));
  }
  return ritz;
}

}  // namespace ablate::engine
