#include "server/engine/analyze/logistic.h"

#include <cmath>
#include <limits>

namespace ablate::engine {

LogisticObjective::LogisticObjective(const at::Tensor& rows, absl::Span<const int64_t> of_rows,
                                     int64_t classes, double c, absl::FunctionRef<void()> check)
    : rows_(rows),
      of_rows_(at::tensor(at::ArrayRef<int64_t>(of_rows.data(), of_rows.size()), at::kLong)
                   .unsqueeze(1)),
      classes_(classes),
      penalty_(1 / (c * static_cast<double>(of_rows.size()))),
      check_(check) {}

double LogisticObjective::operator()(const at::Tensor& coefficients, at::Tensor* gradient) const {
  check_();
  const auto n = static_cast<double>(rows_.size(0));
  const at::Tensor weights = coefficients.view({classes_, -1}).narrow(1, 0, rows_.size(1));
  at::Tensor scores = LogisticScores(coefficients, rows_);  // [n, classes]
  scores.sub_(scores.amax(1, true));
  const at::Tensor own = scores.gather(1, of_rows_);
  at::Tensor p = scores.exp_();
  const at::Tensor sums = p.sum(1, true);
  const double loss = (sums.log() - own).sum().item<double>() / n;
  p.div_(sums);
  p.scatter_add_(1, of_rows_, at::full_like(own, -1.0));  // the gradient by the scores
  p.div_(n);
  *gradient = at::empty_like(coefficients);
  const at::Tensor by_class = gradient->view({classes_, -1});
  by_class.narrow(1, 0, rows_.size(1)).copy_(at::mm(p.t(), rows_).add_(weights, penalty_));
  by_class.select(1, rows_.size(1)).copy_(p.sum(0));
  return loss + 0.5 * penalty_ * weights.square().sum().item<double>();
}

at::Tensor LogisticScores(const at::Tensor& coefficients, const at::Tensor& rows) {
  const int64_t features = rows.size(1);
  const at::Tensor by_class = coefficients.view({-1, features + 1});
  return at::mm(rows, by_class.narrow(1, 0, features).t()).add_(by_class.select(1, features));
}

at::Tensor StandardisedRows(const at::Tensor& rows, int64_t training) {
  constexpr double kConstant = 4 * std::numeric_limits<double>::epsilon();
  at::Tensor x = rows.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor trained = x.narrow(0, 0, training);
  // Dividing by the largest value first keeps squares from overflowing.
  const at::Tensor largest =
      at::linalg_vector_norm(trained, std::numeric_limits<double>::infinity(), {0});
  x.div_(largest.masked_fill(largest.eq(0), 1));
  x.sub_(trained.mean(0));
  const at::Tensor deviation =
      at::linalg_vector_norm(trained, 2, {0}) / std::sqrt(static_cast<double>(training));
  x.div_(deviation.masked_fill(deviation.le(kConstant), 1));
  return x;
}

}  // namespace ablate::engine
