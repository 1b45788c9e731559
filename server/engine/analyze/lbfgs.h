// Minimises smooth functions by L-BFGS with a line search for the strong Wolfe conditions. The
// state between steps consists of tensors, so that it can be saved.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_LBFGS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_LBFGS_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace ablate::engine {

// Returns the function's value at x [n], and stores its gradient [n]. Both are float64.
using SmoothFunction = absl::FunctionRef<double(const at::Tensor& x, at::Tensor* gradient)>;

enum class LbfgsStatus {
  kRunning,
  kConverged,  // no element of the gradient is larger than the tolerance
  kStalled,    // rounding errors hide any smaller value along the direction
  kNonFinite,  // the function isn't finite at the first point
};

// A minimisation of n variables in progress; float64.
struct LbfgsState {
  static constexpr int64_t kHistory = 10;
  enum Number { kValue, kStatus, kSteps, kPairs, kNumbers };

  at::Tensor x;         // [n]
  at::Tensor gradient;  // at x, [n]
  at::Tensor moves;     // x − the x before, of the last steps, [kHistory, n]
  at::Tensor changes;   // the same of the gradient; pair i is in row i mod kHistory
  at::Tensor numbers;   // [kNumbers]

  // Returns a state of zeros.
  static LbfgsState Make(int64_t n);
  // Returns views of the first n variables.
  LbfgsState First(int64_t n) const;
  LbfgsState Clone() const;
  void CopyFrom(const LbfgsState& other);

  double value() const { return numbers[kValue].item<double>(); }
  LbfgsStatus status() const { return static_cast<LbfgsStatus>(numbers[kStatus].item<double>()); }
  int64_t steps() const { return static_cast<int64_t>(numbers[kSteps].item<double>()); }
};

// Returns the state at x = 0, before the first step.
LbfgsState BeginLbfgs(int64_t n, SmoothFunction function, double tolerance);

// Takes up to `steps` steps, fewer if the state doesn't stay kRunning (Nocedal & Wright, Numerical
// Optimization, 2nd edition: algorithms 7.4, 3.5 and 3.6). Exceptions of `function` leave the state
// unspecified.
void AdvanceLbfgs(int64_t steps, SmoothFunction function, double tolerance, LbfgsState* state);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_LBFGS_H_
