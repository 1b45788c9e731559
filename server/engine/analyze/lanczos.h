// Eigenvalues of a symmetric matrix that is known by its products alone (Lanczos 1950).
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_LANCZOS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_LANCZOS_H_

#include <ATen/ATen.h>

#include <vector>

#include "absl/types/span.h"

namespace ablate::engine {

// What a step from the last vector v of an orthonormal basis leaves, given H·v.
struct LanczosStep {
  double alpha = 0;  // vᵀHv
  double beta = 0;   // the norm of what is orthogonal to the whole basis
  at::Tensor next;   // that over its norm, [P] float64; of no use where the norm is 0
};

// Orthogonal to all of `basis` [j, P], of either precision, by two passes of Gram and Schmidt: the
// recurrence of three terms alone loses what it has found and finds it again. `product` [P] is
// float64.
LanczosStep StepOf(const at::Tensor& basis, const at::Tensor& product);

// The tridiagonal matrix's eigenvalues, ascending.
struct RitzValues {
  std::vector<double> values;
  std::vector<double> weights;  // of each in the spectrum as the first vector sees it, to sum 1
  // |H·y − θy| of each Ritz vector: an eigenvalue is at least so near.
  std::vector<double> residuals;
};

// Of steps with these alphas and betas, as many: the last beta is what was left over. All finite.
RitzValues RitzValuesOf(absl::Span<const double> alphas, absl::Span<const double> betas);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_LANCZOS_H_
