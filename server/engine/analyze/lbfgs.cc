#include "server/engine/analyze/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace ablate::engine {
namespace {

constexpr double kDecrease = 1e-4;  // c₁ of the Wolfe conditions
constexpr double kCurvature = 0.9;  // c₂
constexpr double kLongestStep = 1e20;
constexpr int kMostTrials = 40;  // evaluations of one line search
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

double Dot(const at::Tensor& a, const at::Tensor& b) { return at::dot(a, b).item<double>(); }

// A point on the line x + length·direction.
struct LinePoint {
  double length = 0;
  double value = 0;
  double slope = 0;  // of the value by length
  at::Tensor x, gradient;
};

// Returns the minimum of the cubic with these values and slopes, kept away from both ends; the
// middle if there is none (Nocedal & Wright, equation 3.59).
double BetweenPoints(const LinePoint& a, const LinePoint& b) {
  const double low = std::min(a.length, b.length), span = std::abs(b.length - a.length);
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length);
  const double square = d1 * d1 - a.slope * b.slope;
  double length = low + 0.5 * span;
  if (square >= 0) {
    const double d2 = std::copysign(std::sqrt(square), b.length - a.length);
    const double cubic =
        b.length - (b.length - a.length) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
    if (std::isfinite(cubic)) length = cubic;
  }
  return std::clamp(length, low + 0.1 * span, low + 0.9 * span);
}

// Finds a point with the strong Wolfe conditions along a direction of descent.
class LineSearch {
 public:
  LineSearch(SmoothFunction function, const LbfgsState& from, const at::Tensor& direction)
      : function_(function), x_(from.x), direction_(direction) {
    start_ = {0, from.value(), Dot(from.gradient, direction), from.x, from.gradient};
    // Near a minimum the value changes by less than it is rounded.
    slack_ = 4 * kEpsilon * std::abs(start_.value);
  }

  double slope() const { return start_.slope; }

  // Algorithm 3.5. Returns nullopt if rounding errors or kMostTrials prevent it.
  std::optional<LinePoint> Find(double length) {
    LinePoint before = start_;
    while (trials_ < kMostTrials && length < kLongestStep) {
      LinePoint at = At(length);
      if (!Decreases(at) || (before.length > 0 && at.value >= before.value + slack_)) {
        return Zoom(std::move(before), std::move(at));
      }
      if (IsFlat(at)) return at;
      if (at.slope >= 0) return Zoom(std::move(at), std::move(before));
      length = 2 * at.length;
      before = std::move(at);
    }
    return std::nullopt;
  }

 private:
  LinePoint At(double length) {
    ++trials_;
    LinePoint at;
    at.length = length;
    at.x = x_ + length * direction_;
    at.value = function_(at.x, &at.gradient);
    at.slope = Dot(at.gradient, direction_);
    if (!std::isfinite(at.value) || !std::isfinite(at.slope)) {
      at.value = std::numeric_limits<double>::infinity();
      at.slope = 0;
    }
    return at;
  }

  bool Decreases(const LinePoint& at) const {
    return at.value <= start_.value + kDecrease * at.length * start_.slope + slack_;
  }
  bool IsFlat(const LinePoint& at) const {
    return std::abs(at.slope) <= -kCurvature * start_.slope;
  }

  // Algorithm 3.6. `low` satisfies the first condition with the lowest value so far.
  std::optional<LinePoint> Zoom(LinePoint low, LinePoint high) {
    while (trials_ < kMostTrials) {
      LinePoint at = At(BetweenPoints(low, high));
      if (at.length == low.length || at.length == high.length) break;
      if (!Decreases(at) || at.value > low.value + slack_) {
        high = std::move(at);
        continue;
      }
      if (IsFlat(at)) return at;
      if (at.slope * (high.length - low.length) >= 0) high = std::move(low);
      low = std::move(at);
    }
    return std::nullopt;
  }

  const SmoothFunction function_;
  const at::Tensor x_;
  const at::Tensor direction_;
  LinePoint start_;
  double slack_ = 0;
  int trials_ = 0;
};

// Returns −H·gradient for the inverse Hessian of the stored pairs (algorithm 7.4).
at::Tensor DirectionOf(const LbfgsState& state, int64_t pairs) {
  at::Tensor direction = -state.gradient;
  const int64_t oldest = std::max<int64_t>(0, pairs - LbfgsState::kHistory);
  std::vector<double> alphas;
  const auto move = [&](int64_t i) { return state.moves[i % LbfgsState::kHistory]; };
  const auto change = [&](int64_t i) { return state.changes[i % LbfgsState::kHistory]; };
  for (int64_t i = pairs - 1; i >= oldest; --i) {
    alphas.push_back(Dot(move(i), direction) / Dot(move(i), change(i)));
    direction.sub_(change(i), alphas.back());
  }
  if (pairs > 0) {
    const at::Tensor last = change(pairs - 1);
    direction.mul_(Dot(move(pairs - 1), last) / Dot(last, last));
  }
  for (int64_t i = oldest; i < pairs; ++i) {
    const double beta = Dot(change(i), direction) / Dot(move(i), change(i));
    direction.add_(move(i), alphas[static_cast<size_t>(pairs - 1 - i)] - beta);
  }
  return direction;
}

// Returns the status of a point from its gradient.
LbfgsStatus StatusAt(const at::Tensor& gradient, double tolerance) {
  const double largest = gradient.abs().max().item<double>();
  return largest <= tolerance ? LbfgsStatus::kConverged : LbfgsStatus::kRunning;
}

void SetStatus(LbfgsState* state, LbfgsStatus status) {
  state->numbers[LbfgsState::kStatus].fill_(static_cast<double>(status));
}

// Takes one step, or sets the status.
void Step(SmoothFunction function, double tolerance, LbfgsState* state) {
  auto pairs = static_cast<int64_t>(state->numbers[LbfgsState::kPairs].item<double>());
  std::optional<LinePoint> found;
  while (true) {
    const at::Tensor direction = DirectionOf(*state, pairs);
    LineSearch search(function, *state, direction);
    const double first = pairs > 0 ? 1 : std::min(1.0, 1 / direction.norm().item<double>());
    if (search.slope() < 0) found = search.Find(first);
    if (found.has_value() || pairs == 0) break;
    pairs = 0;  // Tries the gradient itself.
  }
  if (!found.has_value()) return SetStatus(state, LbfgsStatus::kStalled);
  const at::Tensor move = found->x - state->x, change = found->gradient - state->gradient;
  if (Dot(move, change) > kEpsilon * Dot(change, change)) {
    state->moves[pairs % LbfgsState::kHistory].copy_(move);
    state->changes[pairs % LbfgsState::kHistory].copy_(change);
    ++pairs;
  }
  state->x.copy_(found->x);
  state->gradient.copy_(found->gradient);
  state->numbers[LbfgsState::kValue].fill_(found->value);
  state->numbers[LbfgsState::kPairs].fill_(static_cast<double>(pairs));
  state->numbers[LbfgsState::kSteps].add_(1);
  SetStatus(state, StatusAt(state->gradient, tolerance));
}

}  // namespace

LbfgsState LbfgsState::Make(int64_t n) {
  const auto zeros = [](const std::vector<int64_t>& shape) {
    return at::zeros(shape, at::kDouble);
  };
  return {zeros({n}), zeros({n}), zeros({kHistory, n}), zeros({kHistory, n}), zeros({kNumbers})};
}

LbfgsState LbfgsState::First(int64_t n) const {
  return {x.narrow(0, 0, n), gradient.narrow(0, 0, n), moves.narrow(1, 0, n),
          changes.narrow(1, 0, n), numbers};
}

LbfgsState LbfgsState::Clone() const {
  return {x.clone(), gradient.clone(), moves.contiguous().clone(), changes.contiguous().clone(),
          numbers.clone()};
}

void LbfgsState::CopyFrom(const LbfgsState& other) {
  x.copy_(other.x);
  gradient.copy_(other.gradient);
  moves.copy_(other.moves);
  changes.copy_(other.changes);
  numbers.copy_(other.numbers);
}

LbfgsState BeginLbfgs(int64_t n, SmoothFunction function, double tolerance) {
  LbfgsState state = LbfgsState::Make(n);
  at::Tensor gradient;
  const double value = function(state.x, &gradient);
  state.gradient.copy_(gradient);
  state.numbers[LbfgsState::kValue].fill_(value);
  const bool finite = std::isfinite(value) && std::isfinite(gradient.sum().item<double>());
  SetStatus(&state, finite ? StatusAt(gradient, tolerance) : LbfgsStatus::kNonFinite);
  return state;
}

void AdvanceLbfgs(int64_t steps, SmoothFunction function, double tolerance, LbfgsState* state) {
  for (int64_t i = 0; i < steps && state->status() == LbfgsStatus::kRunning; ++i) {
    Step(function, tolerance, state);
  }
}

}  // namespace ablate::engine
