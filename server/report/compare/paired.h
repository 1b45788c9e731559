// Compares two settings over their common seeds by Student's t, the sign-flip test and the
// bootstrap. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_PAIRED_H_
#define ABLATE_SERVER_REPORT_COMPARE_PAIRED_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// Random numbers of resampling tests, the same on every platform: splitmix64, whose state starts at
// the seed. A value type, not thread-safe.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t word = state_;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
  }

  // Returns a uniform number in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // Returns a uniform number in 0 … bound-1, without bias; bound >= 1.
  uint32_t Below(uint32_t bound) {
    // Words below 2^32 mod bound would make the first numbers likelier: draw again.
    const uint32_t reject = -bound % bound;
    while (true) {
      const uint64_t product = (Next() >> 32) * bound;
      if (static_cast<uint32_t>(product) >= reject) return static_cast<uint32_t>(product >> 32);
    }
  }

 private:
  uint64_t state_;
};

// Seed of the random numbers of every test here.
inline constexpr uint64_t kResamplingSeed = 0;

struct SignFlipResult {
  Number p;  // undefined: kTooFewPairs (below 2), kNonFinite
  // All 2^n sign patterns are counted. Otherwise (c+1)/(B+1), of B drawn ones: 100,000, or 10,000
  // for more than 10,000 pairs.
  bool exact = false;
};

// Two-sided paired permutation (sign-flip) test of the mean. Sums within kTie, relative to the
// larger of the observed sum and the largest difference, count as equal to it, so that rounding
// can't split ties. If all differences other than 0 have one size, it is McNemar's exact test, for
// any number of pairs. Depends neither on the order nor on the sign (p of -d is p of d). With more
// than `exact_up_to` pairs signs are drawn. Pure, safe from any thread.
SignFlipResult SignFlipTest(absl::Span<const double> differences, size_t exact_up_to = 20);

struct BootstrapResult {
  // Interval of the mean at kConfidence: bias-corrected and accelerated (BCa). Also kNonFinite if
  // all resamples lie on one side.
  Interval interval;
  Number bias;          // z0; resamples within kTie of the estimate count half
  Number acceleration;  // from the jackknife
};

// Bootstraps the mean. Undefined: kTooFewPairs (below 2 values), kZeroVariance (as
// StandardDeviation), kNonFinite.
BootstrapResult Bootstrap(absl::Span<const double> sample, size_t resamples = 10000);

// Does the same with given draws: `indices` are [resamples, n], each below n = sample.size().
BootstrapResult BootstrapFromIndices(absl::Span<const double> sample,
                                     absl::Span<const uint32_t> indices);

// Statistics of setting minus baseline, over n pairs.
struct PairedStatistics {
  size_t n = 0;
  Number mean, deviation;       // of the differences
  Interval interval;            // of the mean, at kConfidence: Student's t, unless by_reselection
  bool by_reselection = false;  // from TestByReselection, as p_sign_flip
  Number t, p_t;                // two-sided; n-1 degrees of freedom
  Number p_sign_flip;           // two-sided
  bool exact = false;           // p_sign_flip counts all patterns
  Number effect;                // d_z: mean over deviation of the differences
  Number effect_unbiased;       // d_z times Hedges' factor; needs three pairs
  Number skewness;              // of the differences: m3 / m2^1.5; needs three pairs
  Number correlation;           // Pearson's, of the two settings over the pairs; needs three pairs
  Interval bca;                 // bootstrap, of the mean
};

// Compares pairs. `setting` and `baseline` have equal lengths; element i of both is one seed's, all
// finite. `resamples` is for the bootstrap, 0 or over 10,000 pairs: bca is undefined. Undefined
// numbers: kTooFewPairs, kZeroVariance (differences equal up to the rounding of the original
// numbers), kNonFinite. Pure, safe from any thread.
enum class Signs { kFlip, kLeaveOut };  // kLeaveOut: p_sign_flip is kNotRecorded
PairedStatistics ComparePairs(absl::Span<const double> setting, absl::Span<const double> baseline,
                              size_t resamples = 10000, Signs signs = Signs::kFlip);

// Returns the larger p of Student's two one-sided tests that the mean difference is within ±margin
// (Schuirmann 1987). Undefined: `pairs.deviation`'s reason.
Number EquivalenceTest(const PairedStatistics& pairs, double margin);

// Returns statistics that are all undefined for the same reason.
PairedStatistics NoPairs(Undefined reason);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_PAIRED_H_
