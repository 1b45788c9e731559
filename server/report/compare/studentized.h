// How far the differences of pairs are from 0, measured in their own spread, at every shift of the
// one setting's values; and at which shifts one pattern of signs leads at least as far as another.
// Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_STUDENTIZED_H_
#define ABLATE_SERVER_REPORT_COMPARE_STUDENTIZED_H_

#include <cstddef>
#include <limits>
#include <vector>

namespace ablate::report {

// What is needed of the differences under one pattern. A shift δ takes δ off a difference of which
// the setting is the first term, and adds it where the pattern has flipped the pair.
struct SignedSums {
  double n = 0;
  double sum = 0, squares = 0;       // of the differences
  double signs = 0, signed_sum = 0;  // of the signs, −1 where flipped, and of sign × difference

  void Add(double difference, bool flipped) {
    const double sign = flipped ? -1 : 1;
    n += 1;
    sum += difference;
    squares += difference * difference;
    signs += sign;
    signed_sum += sign * difference;
  }
};

// |Σd| / √Σd², which among as many differences orders as Student's |t| does: t² = (n−1)u/(n−u) with
// its square u. Finite where t is not: √n, the most there is, of differences that are all equal, 0
// where all are 0.
double Studentized(const SignedSums& sums, double shift);

struct Shifts {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = -kInfinity, high = kInfinity;
};

// The shifts at which `pattern` is at least as far from 0 as `seen`, which has flipped no pair,
// apart and ascending; ends are those of a polynomial of the fourth degree. A pattern that has
// flipped none of its pairs, or all, or has none, is as far everywhere: no large shift tells it
// from `seen`.
std::vector<Shifts> AtLeastAsFar(const SignedSums& pattern, const SignedSums& seen);

// The largest shift that at least `least` >= 1 of the stretches take in; −∞ where none is.
double LargestShared(const std::vector<Shifts>& stretches, size_t least);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_STUDENTIZED_H_
