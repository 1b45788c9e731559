#include "server/engine/analyze/hsic.h"

#include <cfloat>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {
namespace {

// Relative rounding error of the squares of equal rows.
const double kHsicRounding = std::pow(4 * DBL_EPSILON, 2);

// Returns whether sums of squares around a mean exceed rounding, given the rows' own sum of
// squares, `all`. Sums that aren't finite count as varying.
at::Tensor VariesBeyondRounding(const at::Tensor& centred, const at::Tensor& all) {
  return centred.le(kHsicRounding * all).logical_and(all.isfinite()).logical_not();
}

// Mirrors the upper triangle, so that the order of two matrices makes no difference.
at::Tensor Mirrored(const at::Tensor& upper) { return upper.triu() + upper.triu(1).t(); }

// Returns HSIC_u (Song et al. 2012, eq. 5) of every pair, from Σ K̃∘L̃ and K̃1 (`sums`).
at::Tensor UnbiasedFromGrams(const at::Tensor& products, const at::Tensor& sums) {
  const auto n = static_cast<double>(sums.size(1));
  const at::Tensor totals = sums.sum(1);  // [m]
  return (products + totals.outer(totals) / ((n - 1) * (n - 2)) -
          sums.mm(sums.t()) * (2 / (n - 2))) /
         (n * (n - 3));
}

HsicMatrix HsicOnHost(const HsicMatrix& hsic) {
  return {OnHost(hsic.values), OnHost(hsic.scale), OnHost(hsic.varies)};
}

}  // namespace

HsicMatrix UnbiasedHsic(const std::vector<at::Tensor>& matrices) {
  const auto m = static_cast<int64_t>(matrices.size());
  const int64_t n = matrices[0].size(0);
  const at::TensorOptions exact = matrices[0].options();
  const at::Tensor grams = at::empty({m, n * n}, exact), sums = at::empty({m, n}, exact);
  HsicMatrix hsic = {{}, at::empty({m}, exact), at::empty({m}, exact.dtype(at::kBool))};
  for (int64_t i = 0; i < m; ++i) {
    const at::Tensor& x = matrices[static_cast<size_t>(i)];
    // HSIC_u doesn't depend on a shift of all rows, but its accuracy does.
    const at::Tensor centred = x - x.mean(0);
    const at::Tensor gram = centred.mm(centred.t());  // [n, n]
    hsic.varies[i].copy_(VariesBeyondRounding(gram.trace(), x.square().sum()));
    hsic.scale[i].copy_(gram.square().sum() / static_cast<double>(n * (n - 3)));
    gram.diagonal().zero_();
    sums[i].copy_(gram.sum(1));
    grams[i].copy_(gram.flatten());
  }
  hsic.values = Mirrored(UnbiasedFromGrams(grams.mm(grams.t()), sums));
  return HsicOnHost(hsic);
}

HsicSums::HsicSums(std::vector<int64_t> columns, const std::vector<at::Tensor>& shift)
    : columns_(std::move(columns)), shift_(at::cat(shift)) {
  const int64_t all = shift_.numel();
  const auto m = static_cast<int64_t>(columns_.size());
  int64_t offset = 0;
  for (const int64_t count : columns_) {
    offsets_.push_back(offset);
    products_.push_back(at::zeros({count, all - offset}, shift_.options()));
    offset += count;
  }
  sums_ = at::zeros({all}, shift_.options());
  squares_ = at::zeros({m}, shift_.options());
  square_products_ = at::zeros({m, m}, shift_.options());
  weighted_ = at::zeros({m, all}, shift_.options());
}

void HsicSums::Add(const std::vector<at::Tensor>& matrices) {
  const at::Tensor z = at::cat(matrices, 1) - shift_;  // [n, D]
  std::vector<at::Tensor> norms;
  for (size_t i = 0; i < columns_.size(); ++i) {
    norms.push_back(z.narrow(1, offsets_[i], columns_[i]).square().sum(1));
  }
  const at::Tensor k = at::stack(norms);  // [m, n]
  for (size_t i = 0; i < columns_.size(); ++i) {
    products_[i].addmm_(z.narrow(1, offsets_[i], columns_[i]).t(),
                        z.narrow(1, offsets_[i], z.size(1) - offsets_[i]));
  }
  sums_ += z.sum(0);
  squares_ += k.sum(1);
  square_products_.addmm_(k, k.t());
  weighted_.addmm_(k, z);
}

std::vector<StateTensor> HsicSums::State() {
  std::vector<StateTensor> state = {{"sums", sums_},
                                    {"squares", squares_},
                                    {"square_products", square_products_},
                                    {"weighted", weighted_}};
  for (size_t i = 0; i < products_.size(); ++i) {
    state.push_back({absl::StrCat("products.", i), products_[i]});
  }
  return state;
}

HsicMatrix HsicSums::Estimate(CkaEstimator estimator, uint64_t rows) {
  const auto n = static_cast<double>(rows);
  const auto m = static_cast<int64_t>(columns_.size());
  const at::Tensor mean = sums_ / n;                       // [D]
  const auto of = [&](const at::Tensor& all, int64_t i) {  // the columns of matrix i
    const auto at = static_cast<size_t>(i);
    return all.narrow(-1, offsets_[at], columns_[at]);
  };
  const at::TensorOptions exact = shift_.options();
  at::Tensor cross = at::empty({m, m}, exact);      // ‖XᵀY‖² of centred matrices
  at::Tensor quadratic = at::empty({m, m}, exact);  // mᵀ(Σ x yᵀ)v with the means m and v
  at::Tensor weighted = at::empty({m, m}, exact);   // Σ k·(vᵀy)
  at::Tensor means = at::empty({m}, exact);         // ‖m‖²
  at::Tensor unshifted = at::empty({m}, exact);     // Σ‖x‖² of unshifted rows
  for (int64_t i = 0; i < m; ++i) {
    const at::Tensor x = of(mean, i), shift = of(shift_, i);
    means[i].copy_(x.square().sum());
    unshifted[i].copy_(squares_[i] + 2 * n * x.dot(shift) + n * shift.square().sum());
    weighted.select(1, i).copy_(of(weighted_, i).mv(x));
    for (int64_t j = i; j < m; ++j) {
      const auto at = static_cast<size_t>(i);
      const int64_t first = offsets_[static_cast<size_t>(j)] - offsets_[at];
      const at::Tensor product =
          products_[at].narrow(1, first, columns_[static_cast<size_t>(j)]);  // [d_i, d_j]
      const at::Tensor y = of(mean, j);
      cross[i][j].copy_((product - x.outer(y) * n).square().sum());
      quadratic[i][j].copy_(x.dot(product.mv(y)));
    }
  }
  const at::Tensor centred = squares_ - n * means;  // Σ‖x − m‖²
  HsicMatrix hsic;
  hsic.varies = VariesBeyondRounding(centred, unshifted);
  if (estimator == CkaEstimator::kBiased) {
    hsic.values = Mirrored(cross) / ((n - 1) * (n - 1));
    hsic.scale = hsic.values.diagonal();
    return HsicOnHost(hsic);
  }
  // Σ‖x − m‖²‖y − v‖², expanded.
  const at::Tensor squares = square_products_ - 2 * (weighted + weighted.t()) +
                             squares_.outer(means) + means.outer(squares_) + 4 * quadratic -
                             3 * n * means.outer(means);
  const at::Tensor unbiased =
      cross - squares * (n / (n - 2)) + centred.outer(centred) / ((n - 1) * (n - 2));
  hsic.values = Mirrored(unbiased) / (n * (n - 3));
  hsic.scale = cross.diagonal() / (n * (n - 3));
  return HsicOnHost(hsic);
}

}  // namespace ablate::engine
