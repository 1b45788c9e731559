// Statistics of one sample and of p values. Pure functions, safe from any thread; formulas as in
// analyses.md.
#ifndef ABLATE_SERVER_REPORT_STATISTICS_H_
#define ABLATE_SERVER_REPORT_STATISTICS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "server/report/number.h"

namespace ablate::report {

inline constexpr double kConfidence = 0.95;  // of every interval
inline constexpr double kAlpha = 0.05;       // of every test
inline constexpr double kTie = 1e-12;        // relative difference below which two numbers are one

// Arithmetic mean. Undefined: kTooFewRuns (none), kNonFinite.
Number Mean(absl::Span<const double> values);

// Sample standard deviation (n-1). `magnitude` is the largest absolute number that the values were
// computed from: the spread of differences may be nothing but its rounding; 0 means the values
// themselves. Undefined: kTooFewRuns (below 2), kNonFinite, kZeroVariance (m2 <= (4 eps max|x|)^2).
Number StandardDeviation(absl::Span<const double> values, double magnitude = 0);

// mean ± t·s/√n from the mean and the sample standard deviation of n values.
// Undefined: the reason of whichever of the two is undefined.
Interval MeanInterval(const Number& mean, const Number& deviation, size_t n,
                      double confidence = kConfidence);

// Mean of what is left when ⌊n/4⌋ values are cut at each end. Undefined as Mean.
Number InterquartileMean(absl::Span<const double> values);

// Quantile of values in ascending order by linear interpolation (type 7); `level` in [0, 1], not
// empty.
double SortedQuantile(absl::Span<const double> ascending, double level);

// Pearson's correlation of two samples of one length. Undefined: kTooFewRuns (below 3: two points
// always give ±1), kNonFinite, kZeroVariance.
Number Correlation(absl::Span<const double> x, absl::Span<const double> y);

// P(|T| >= |t|) and the quantile of Student's t with `freedom` > 0 degrees; `level` in (0, 1).
double StudentTwoSidedP(double t, double freedom);
double StudentQuantile(double level, double freedom);

// The distribution function of the standard normal distribution, and its inverse for `level` in (0,
// 1).
double NormalProbability(double z);
double NormalQuantile(double level);

// Hedges' factor J(ν) = Γ(ν/2) / (Γ((ν-1)/2) √(ν/2)), which removes the bias of mean/s; 0 for ν <=
// 1, where that has no expectation.
double HedgesFactor(double freedom);

// Holm's adjusted p values, in the order given. An undefined p stays undefined and counts in the
// family: the comparison was planned.
std::vector<Number> HolmAdjust(absl::Span<const Number> p);

// Exact two-sided sign test of `wins` against `losses`, ties dropped before. Undefined:
// kTooFewPairs (none).
Number SignTest(size_t wins, size_t losses);

inline constexpr size_t kMostSeeds = 10000;  // that a spec can ask for

// The least n at which the t interval of a mean leaves out 0, were mean/s to stay `effect`:
// t(.975, n-1)/√n <= |effect|. Undefined: `effect`'s reason; kBeyondLimit above kMostSeeds (and for
// 0).
Number SeedsToDecide(const Number& effect);

// The least n at which a two-sided sign-flip test can reach kAlpha in a Holm family of `family` >=
// 1 tests.
size_t LeastSeedsForSignFlip(size_t family);

// The sample of one setting, described.
struct Summary {
  size_t n = 0;
  Number mean, deviation, interquartile_mean;
  Interval interval;  // of the mean, at kConfidence
};

Summary Summarize(absl::Span<const double> values);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_STATISTICS_H_
