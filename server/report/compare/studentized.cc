#include "server/report/compare/studentized.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

namespace ablate::report {
namespace {

using Polynomial = std::vector<double>;  // by ascending powers, at most the fourth

double Value(const Polynomial& polynomial, double x) {
  double value = 0;
  for (size_t i = polynomial.size(); i > 0; --i) value = value * x + polynomial[i - 1];
  return value;
}

// Adds factor × a × b to `to`.
void AddProduct(double factor, const Polynomial& a, const Polynomial& b, Polynomial* to) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) (*to)[i + j] += factor * a[i] * b[j];
  }
}

// Return (Σd)² and Σd² as polynomials of the shift.
Polynomial SquaredSum(const SignedSums& sums) {
  return {sums.sum * sums.sum, -2 * sums.sum * sums.signs, sums.signs * sums.signs};
}
Polynomial Squares(const SignedSums& sums) { return {sums.squares, -2 * sums.signed_sum, sums.n}; }

// Returns the root between two ends of which only one has a value below 0.
double Root(const Polynomial& polynomial, double low, double high) {
  const boost::math::tools::eps_tolerance<double> to_the_last_bits(50);
  std::uintmax_t most = 200;  // bisection alone takes about 60
  const auto [left, right] = boost::math::tools::toms748_solve(
      [&](double x) { return Value(polynomial, x); }, low, high, to_the_last_bits, most);
  return left + (right - left) / 2;
}

// Returns the points at which a polynomial, whose leading coefficient isn't 0, changes sign: at
// most once between two neighbouring sign changes of its derivative, and nowhere beyond Cauchy's
// bound of roots.
std::vector<double> SignChanges(const Polynomial& polynomial) {
  if (polynomial.size() < 2) return {};
  Polynomial derivative;
  double bound = 0;
  for (size_t i = 0; i + 1 < polynomial.size(); ++i) {
    derivative.push_back(static_cast<double>(i + 1) * polynomial[i + 1]);
    bound = std::max(bound, std::abs(polynomial[i] / polynomial.back()));
  }
  std::vector<double> ends = SignChanges(derivative);
  ends.push_back(1 + bound);
  std::vector<double> changes;
  double low = -(1 + bound);
  for (const double high : ends) {
    if ((Value(polynomial, low) < 0) != (Value(polynomial, high) < 0)) {
      changes.push_back(Root(polynomial, low, high));
    }
    low = high;
  }
  return changes;
}

}  // namespace

double Studentized(const SignedSums& sums, double shift) {
  const double squares = Value(Squares(sums), shift);
  return squares > 0 ? std::abs(sums.sum - shift * sums.signs) / std::sqrt(squares) : 0;
}

std::vector<Shifts> AtLeastAsFar(const SignedSums& pattern, const SignedSums& seen) {
  Polynomial ahead(5, 0.0);
  AddProduct(1, SquaredSum(pattern), Squares(seen), &ahead);
  AddProduct(-1, SquaredSum(seen), Squares(pattern), &ahead);
  if (ahead.back() == 0) return {{}};
  // At −∞ the fourth power decides; from there on every change opens or closes a range.
  bool far = ahead.back() > 0;
  std::vector<Shifts> ranges;
  if (far) ranges.emplace_back();
  for (const double change : SignChanges(ahead)) {
    if (far) ranges.back().high = change;
    if (!far) ranges.push_back({change, Shifts::kInfinity});
    far = !far;
  }
  return ranges;
}

namespace {

// The ends of ranges, each ascending.
struct Ends {
  std::vector<double> lows, highs;
};

Ends EndsOf(const std::vector<Shifts>& ranges) {
  Ends ends;
  for (const Shifts& shifts : ranges) {
    ends.lows.push_back(shifts.low);
    ends.highs.push_back(shifts.high);
  }
  std::sort(ends.lows.begin(), ends.lows.end());
  std::sort(ends.highs.begin(), ends.highs.end());
  return ends;
}

}  // namespace

double LargestShared(const std::vector<Shifts>& ranges, size_t least) {
  const auto [lows, highs] = EndsOf(ranges);
  size_t begun = lows.size();  // ranges that begin at this shift or below
  for (size_t i = highs.size(); i-- > 0;) {
    while (begun > 0 && lows[begun - 1] > highs[i]) --begun;
    if (begun >= i + least) return highs[i];  // i have ended
  }
  return -Shifts::kInfinity;
}

double EndOfShared(const std::vector<Shifts>& ranges, size_t least) {
  const auto [lows, highs] = EndsOf(ranges);
  size_t begun = 0;
  for (size_t i = 0; i < highs.size(); ++i) {
    while (begun < lows.size() && lows[begun] <= highs[i]) ++begun;
    if (highs[i] >= 0 && begun < i + 1 + least) return highs[i];  // i + 1 end here or before
  }
  return 0;
}

}  // namespace ablate::report
