// Computes eigenvalues of a symmetric matrix from matrix-vector products alone (Lanczos 1950).
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_LANCZOS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_LANCZOS_H_

#include <ATen/ATen.h>

#include <vector>

#include "absl/types/span.h"
#include "server/engine/analyze/large_vectors.h"

namespace ablate::engine {

// The result of one step from the last vector v of an orthonormal basis, given H·v.
struct LanczosStep {
  double alpha = 0;  // vᵀHv
  double beta = 0;   // norm of the part of H·v orthogonal to the whole basis
  at::Tensor next;   // that part divided by its norm, [P]; unusable if the norm is 0
};

// Orthogonalises `product` [P] against all of `basis` [j, P], each of either precision, by two
// passes of classical Gram–Schmidt in float64. The three-term recurrence alone loses orthogonality
// and finds the same eigenvalues again. Changes `product`, which becomes the result's `next`.
// Converts so many elements of the basis to float64 at a time; 0: LargePartOf.
LanczosStep StepOf(const at::Tensor& basis, at::Tensor product, int64_t elements = 0);

// Eigenvalues of the tridiagonal matrix, ascending.
struct RitzValues {
  std::vector<double> values;
  std::vector<double> weights;  // of each in the spectral density seen from the first vector; they
                                // add up to 1
  // |H·y − θy| of each Ritz vector: H has an eigenvalue within this distance.
  std::vector<double> residuals;
};

// Returns the Ritz values after equally many alphas and betas; the last beta is the remainder. All
// must be finite.
RitzValues RitzValuesOf(absl::Span<const double> alphas, absl::Span<const double> betas);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_LANCZOS_H_
