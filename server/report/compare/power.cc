#include "server/report/compare/power.h"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <cmath>

#include "absl/functional/function_ref.h"

namespace ablate::report {
namespace {

namespace policies = boost::math::policies;

// NaN instead of exceptions, also without convergence. In double, which is some ten times faster
// than Boost's promoted type, and exact enough.
using QuietPolicy = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>;

// Returns P(T' <= t). For many pairs T' is approximated by a normal deviate (Johnson & Welch 1940),
// which no series beats.
double NoncentralT(double t, double freedom, double noncentrality) {
  constexpr double kMany = 400;
  if (freedom > kMany) {
    const double scale = std::sqrt(1 + t * t / (2 * freedom));
    return NormalProbability((t * (1 - 1 / (4 * freedom)) - noncentrality) / scale);
  }
  return cdf(boost::math::non_central_t_distribution<double, QuietPolicy>(freedom, noncentrality),
             t);
}

// Returns the largest attainable level of the test, up to kAlpha over the family.
double LevelOf(size_t n, size_t family) {
  const double level = kAlpha / static_cast<double>(family);
  if (n > 50) return level;  // attainable levels are closer than any precision
  const double patterns = std::pow(2.0, static_cast<double>(n) - 1);
  return std::floor(level * patterns) / patterns;
}

// Returns where a monotonic condition first holds, in (low, high], to four digits; it holds at
// high.
double Bisect(double low, double high, absl::FunctionRef<bool(double)> holds) {
  while (high - low > 1e-5 * std::max(1.0, std::abs(high))) {
    const double middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

Number SeedsFor(double effect, size_t family) {
  const auto enough = [&](size_t n) { return EstablishingPower(effect, n, family) >= kPower; };
  if (!enough(kMaxSeeds)) return NoNumber(Undefined::kBeyondLimit);
  size_t low = 2, high = 4;  // power rises with n: far from kMaxSeeds for most effects
  while (!enough(high)) {
    low = high;
    high = std::min(2 * high, kMaxSeeds);
  }
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return Defined(static_cast<double>(high));
}

// Returns the noncentrality at which P(T' <= t) = level; P falls as the noncentrality rises.
double NoncentralityAt(double t, double freedom, double level) {
  double reach = 4;
  const auto below = [&](double noncentrality) {
    return NoncentralT(t, freedom, noncentrality) <= level;
  };
  while (!below(t + reach)) reach *= 2;
  return Bisect(t - 2 * reach - std::abs(t), t + reach, below);
}

}  // namespace

double EstablishingPower(double effect, size_t n, size_t family) {
  const double level = LevelOf(n, family);
  if (level <= 0) return 0;
  const auto freedom = static_cast<double>(n - 1);
  const double t = StudentQuantile(1 - level / 2, freedom);
  const double noncentrality = std::abs(effect) * std::sqrt(static_cast<double>(n));
  // So far beyond that the series isn't needed.
  if (noncentrality > t + 40) return 1;
  return std::clamp(
      1 - NoncentralT(t, freedom, noncentrality) + NoncentralT(-t, freedom, noncentrality), 0.0,
      1.0);
}

SeedsNeeded FindSeedsNeeded(const Number& effect, size_t n, size_t family) {
  if (!effect.defined()) return {effect, effect, effect};
  const auto pairs = static_cast<double>(n);
  // Such a large effect needs the minimum of seeds, whatever its interval.
  const double size = std::min(std::abs(effect.value), 30 / std::sqrt(pairs));
  const auto end = [&](double level) {
    return NoncentralityAt(size * std::sqrt(pairs), pairs - 1, level) / std::sqrt(pairs);
  };
  const double largest = end((1 - kPower) / 2), smallest = end((1 + kPower) / 2);
  SeedsNeeded needed;
  needed.estimate = SeedsFor(size, family);
  needed.low = SeedsFor(largest, family);
  needed.high = smallest > 0 ? SeedsFor(smallest, family) : NoNumber(Undefined::kBeyondLimit);
  return needed;
}

Number LeastDetectableEffect(size_t n, size_t family) {
  if (n < 2 || LevelOf(n, family) <= 0) return NoNumber(Undefined::kTooFewPairs);
  double high = 1;
  const auto found = [&](double effect) { return EstablishingPower(effect, n, family) >= kPower; };
  while (!found(high) && high < 1e6) high *= 2;
  return Defined(Bisect(0, high, found));
}

}  // namespace ablate::report
