#include "server/engine/analyze/lanczos.h"

#include <algorithm>
#include <cmath>

namespace ablate::engine {

LanczosStep StepOf(const at::Tensor& basis, const at::Tensor& product, int64_t elements) {
  constexpr int64_t kMostRows = 8;
  const int64_t together = std::clamp<int64_t>(elements / basis.size(1), 1, kMostRows);
  at::Tensor rest = product.clone();
  LanczosStep step;
  step.alpha = basis[-1].to(at::kDouble).dot(product).item<double>();
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t first = 0; first < basis.size(0); first += together) {
      const int64_t rows = std::min(together, basis.size(0) - first);
      const at::Tensor some = basis.narrow(0, first, rows).to(at::kDouble);
      rest.addmv_(some.t(), some.mv(rest), 1, -1);
    }
  }
  step.beta = rest.norm().item<double>();
  step.next = rest.div_(step.beta);
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
