// Defines numbers that may be undefined, and computes the statistics of one sample and of p values.
// Pure functions, safe from any thread; docs/reference/comparison.md has the formulas.
#ifndef ABLATE_SERVER_REPORT_COMPARE_STATISTICS_H_
#define ABLATE_SERVER_REPORT_COMPARE_STATISTICS_H_

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ablate::report {

// Why a statistic is undefined. Never averaged away, never printed as 0 or NaN.
enum class Undefined {
  kNo,                 // it is defined
  kTooFewRuns,         // fewer values than the statistic needs
  kTooFewPairs,        // fewer seeds with both runs than the statistic needs
  kZeroVariance,       // all values equal, up to the rounding of the original numbers
  kNonFinite,          // a value, or the result, is infinite or not a number
  kAllDiverged,        // no seed on which all the runs in question converged
  kTestedByWins,       // only one run of some pair diverged, so the row is tested by its wins
  kNoBaseline,         // the grid has no baseline to compare with
  kIsBaseline,         // the baseline isn't compared with itself
  kBeyondLimit,        // beyond the searched range
  kNotRecorded,        // no run has it, or it wasn't requested, such as a test without a margin
  kScoredDifferently,  // the runs in question have different evaluation data
};

// Returns the name for scripts, such as "TOO_FEW_PAIRS"; "" for kNo.
absl::string_view UndefinedName(Undefined undefined);

// Returns the reason in two or three words; "" if it is obvious.
absl::string_view ReasonText(Undefined undefined);

// Returns the same for a number about pairs, which may have none though the row's own runs
// converged.
absl::string_view PairReasonText(Undefined undefined);

struct Number {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN if undefined
  Undefined undefined = Undefined::kTooFewRuns;

  bool defined() const { return undefined == Undefined::kNo; }
};

// Ends of an interval, low <= high; both NaN if undefined.
struct Interval {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  Undefined undefined = Undefined::kTooFewRuns;

  bool defined() const { return undefined == Undefined::kNo; }
};

// Returns `value` as a Number; kNonFinite if it isn't finite.
Number Defined(double value);

// Returns [low, high]; kNonFinite if an end isn't finite.
Interval DefinedInterval(double low, double high);

// Returns true if an interval of a difference excludes 0, so that its direction is known.
bool LeavesOutZero(const Interval& interval);

// Returns `numerator` / `denominator`; undefined as the denominator, then as the numerator.
Number Quotient(const Number& numerator, const Number& denominator);

// Returns an undefined number with `reason`, which isn't kNo.
Number NoNumber(Undefined reason);
Interval NoInterval(Undefined reason);

// Sums with compensation for rounding, so that length and order hardly matter: Neumaier's
// summation, which, unlike Kahan's, handles a term larger than the sum so far. The terms are
// finite; the total is infinite or NaN if they overflow. A value type, not thread-safe.
class CompensatedSum {
 public:
  void Add(double term) {
    const double total = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - total) + term : (term - total) + sum_;
    sum_ = total;
  }

  // Adds another sum including its compensation.
  void Add(const CompensatedSum& other) {
    Add(other.sum_);
    lost_ += other.lost_;
  }

  double Total() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

inline constexpr double kConfidence = 0.95;  // for every interval
inline constexpr double kAlpha = 0.05;       // for every test
inline constexpr double kTie = 1e-12;  // relative difference below which two numbers are equal

// Returns the value, or 0 if it is no more than the rounding of numbers as large as `magnitude`.
double WithoutRounding(double value, double magnitude);

// Returns a − b; 0 if they are equal up to rounding, as 0.3 − 0.2 and 0.1 are.
double DifferenceOf(double a, double b);

// Returns the arithmetic mean. Undefined: kTooFewRuns (none), kNonFinite.
Number Mean(absl::Span<const double> values);

// Returns the sample standard deviation (n-1). `magnitude` is the largest absolute number that the
// values were computed from, because the spread of differences may be only its rounding; 0 means
// the values themselves. Undefined: kTooFewRuns (below 2), kNonFinite, kZeroVariance (m2 <= (4 eps
// max|x|)^2).
Number StandardDeviation(absl::Span<const double> values, double magnitude = 0);

// Returns mean ± t·s/√n from the mean and the sample standard deviation of n values. Undefined: the
// reason of whichever of the two is undefined.
Interval MeanInterval(const Number& mean, const Number& deviation, size_t n,
                      double confidence = kConfidence);

// Returns the quantile of values in ascending order by linear interpolation (type 7); `level` in
// [0, 1], not empty.
double SortedQuantile(absl::Span<const double> ascending, double level);

// Returns the skewness m3 / m2^1.5 of a sample with this standard deviation. Undefined: kTooFewRuns
// (below 3), the deviation's reason.
Number Skewness(absl::Span<const double> values, const Number& deviation);

// Returns Pearson's correlation of two samples of equal length. Undefined: kTooFewRuns (below 3:
// two points always give ±1), kNonFinite, kZeroVariance.
Number Correlation(absl::Span<const double> x, absl::Span<const double> y);

// Return P(|T| >= |t|) and the quantile of Student's t with `freedom` > 0 degrees; `level` in (0,
// 1).
double StudentTwoSidedP(double t, double freedom);
double StudentQuantile(double level, double freedom);

// Return the distribution function of the standard normal distribution, and its inverse for `level`
// in (0, 1).
double NormalProbability(double z);
double NormalQuantile(double level);

// Returns Hedges' factor J(ν) = Γ(ν/2) / (Γ((ν-1)/2) √(ν/2)), which removes the bias of mean/s; 0
// for ν <= 1, at which that has no expectation.
double HedgesFactor(double freedom);

// Returns Holm's adjusted p values, in the order given. An undefined p stays undefined and counts
// in the family: the comparison was planned.
std::vector<Number> HolmAdjust(absl::Span<const Number> p);

// Returns p of the exact two-sided sign test of `wins` against `losses`, without ties. Undefined:
// kTooFewPairs (none).
Number SignTest(size_t wins, size_t losses);

inline constexpr size_t kMaxSeeds = 10000;  // maximum of a spec

// Returns the least n at which a two-sided sign-flip test can reach kAlpha in a Holm family of
// `family` >= 1 tests.
size_t LeastSeedsForSignFlip(size_t family);

// Descriptive statistics of one setting's sample.
struct Summary {
  size_t n = 0;
  Number mean, deviation;
  Interval interval;  // of the mean, at kConfidence
};

Summary Summarize(absl::Span<const double> values);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_STATISTICS_H_
