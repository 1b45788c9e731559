// The Hilbert–Schmidt independence criterion (HSIC) with linear kernels, between every two of
// several matrices that have the same rows: what CKA is a ratio of. docs/reference/analyses/cka.md
// has the formulas.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_HSIC_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_HSIC_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/analyze/computation.h"

namespace ablate::engine {

// Of m matrices.
struct HsicMatrix {
  at::Tensor values;  // [m, m], float64, symmetric
  at::Tensor scale;   // [m], float64: of the terms whose sum each value of the diagonal is
  at::Tensor varies;  // [m], bool: whether the rows of a matrix differ by more than rounding
};

// The unbiased HSIC_u of a few rows, at least 4: every matrix [n, d_i], float64. Takes m·n² numbers
// of memory.
HsicMatrix UnbiasedHsic(const std::vector<at::Tensor>& matrices);

// Sums over rows that come in parts, from which HSIC follows as if they had come at once.
class HsicSums {
 public:
  // Of matrices with so many columns each. Rows are summed relative to `shift`, one a matrix: near
  // their means, or what centring takes off would be most of all digits.
  HsicSums(std::vector<int64_t> columns, const std::vector<at::Tensor>& shift);

  // A part of every matrix's rows, [n, d_i], float64.
  void Add(const std::vector<at::Tensor>& matrices);
  std::vector<StateTensor> State();
  // Of so many rows as were added: at least 2, for the debiased one 4.
  HsicMatrix Estimate(CkaEstimator estimator, uint64_t rows);

 private:
  const std::vector<int64_t> columns_;
  std::vector<int64_t> offsets_;  // of each matrix's columns in all, D of them
  const at::Tensor shift_;        // [D]
  // With z the shifted rows of all matrices side by side and k_i the squared norm of matrix i's:
  std::vector<at::Tensor> products_;  // Σ z_i z_jᵀ for all j ≥ i, [d_i, D − offset_i]
  at::Tensor sums_;                   // Σ z, [D]
  at::Tensor squares_;                // Σ k_i, [m]
  at::Tensor square_products_;        // Σ k_i k_j, [m, m]
  at::Tensor weighted_;               // Σ k_i z, [m, D]
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_HSIC_H_
