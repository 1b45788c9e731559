// Fits multinomial logistic regressions, with the objective of scikit-learn's LogisticRegression:
// C·Σloss + ½‖W‖², without a penalty of the intercepts.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_LOGISTIC_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_LOGISTIC_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace ablate::engine {

inline constexpr int64_t kMostLogisticSteps = 1000;
// A fit has converged if no element of the gradient of objective/(C·n) is larger, for n rows. This
// is the mean loss and its penalty, in nats.
inline constexpr double kLogisticTolerance = 1e-5;

// The objective for some rows and classes. Coefficients are [classes, d + 1], flattened: a row of W
// and then its intercept.
class LogisticObjective {
 public:
  // `rows` is [n, d] float64; each class is in [0, classes). `check` is called before each
  // evaluation and may throw. It and `rows` must outlive the objective.
  LogisticObjective(const at::Tensor& rows, absl::Span<const int64_t> of_rows, int64_t classes,
                    double c, absl::FunctionRef<void()> check);

  int64_t coefficients() const { return classes_ * (rows_.size(1) + 1); }

  // Returns objective/(C·n), and stores its gradient by the coefficients.
  double operator()(const at::Tensor& coefficients, at::Tensor* gradient) const;

 private:
  const at::Tensor rows_;
  const at::Tensor of_rows_;  // [n, 1] int64
  const int64_t classes_;
  const double penalty_;  // 1/(C·n)
  const absl::FunctionRef<void()> check_;
};

// Returns the scores W·x + b of each class, [n, classes], for rows [n, d].
at::Tensor LogisticScores(const at::Tensor& coefficients, const at::Tensor& rows);

// Returns rows [n, d] in float64, standardised by the mean and the population variance of the first
// `training` rows. Columns that are constant there are only centred.
at::Tensor StandardisedRows(const at::Tensor& rows, int64_t training);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_LOGISTIC_H_
