// Computes the Hilbert–Schmidt independence criterion (HSIC) with linear kernels for every pair of
// several matrices with the same rows; CKA is a ratio of HSICs. docs/reference/analyses/cka.md has
// the formulas.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_HSIC_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_HSIC_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/analyze/computation.h"

namespace ablate::engine {

// The HSICs of m matrices.
struct HsicMatrix {
  at::Tensor values;  // [m, m], float64, symmetric
  at::Tensor scale;   // [m], float64: scale of the terms that sum to each diagonal value
  at::Tensor varies;  // [m], bool: true if the rows of a matrix differ by more than rounding
};

// Returns the unbiased HSIC_u of n rows, at least 4; each matrix is [n, d_i], float64. Takes memory
// for m·n² numbers.
HsicMatrix UnbiasedHsic(const std::vector<at::Tensor>& matrices);

// Accumulates sums over rows that arrive in parts. HSIC follows from them as if all rows had come
// at once.
class HsicSums {
 public:
  // `columns` has the number of columns of each matrix. Rows are summed relative to `shift`, one
  // per matrix. It should be near their means, because otherwise centring cancels most digits.
  HsicSums(std::vector<int64_t> columns, const std::vector<at::Tensor>& shift);

  // Adds a part of every matrix's rows, [n, d_i], float64.
  void Add(const std::vector<at::Tensor>& matrices);
  std::vector<StateTensor> State();
  // Returns the estimate, given the number of rows added: at least 2, or 4 for the debiased
  // estimator.
  HsicMatrix Estimate(CkaEstimator estimator, uint64_t rows);

 private:
  const std::vector<int64_t> columns_;
  std::vector<int64_t> offsets_;  // first column of each matrix among all D columns
  const at::Tensor shift_;        // [D]
  // With z the concatenated shifted rows of all matrices, and k_i the squared norm of matrix i's
  // row:
  std::vector<at::Tensor> products_;  // Σ z_i z_jᵀ for all j ≥ i, [d_i, D − offset_i]
  at::Tensor sums_;                   // Σ z, [D]
  at::Tensor squares_;                // Σ k_i, [m]
  at::Tensor square_products_;        // Σ k_i k_j, [m, m]
  at::Tensor weighted_;               // Σ k_i z, [m, D]
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_HSIC_H_
