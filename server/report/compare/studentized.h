// Computes Studentized distances of paired differences from 0, at every shift of one setting's
// values, and the shifts at which one pattern of signs is at least as far as another. Pure
// functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_STUDENTIZED_H_
#define ABLATE_SERVER_REPORT_COMPARE_STUDENTIZED_H_

#include <cstddef>
#include <limits>
#include <vector>

namespace ablate::report {

// Sums of the differences under one pattern. A shift δ is subtracted from a difference whose first
// term is the setting's, and added if the pattern has flipped the pair.
struct SignedSums {
  double n = 0;
  double sum = 0, squares = 0;       // of the differences
  double signs = 0, signed_sum = 0;  // of the signs, −1 if flipped, and of sign × difference

  void Add(double difference, bool flipped) {
    const double sign = flipped ? -1 : 1;
    n += 1;
    sum += difference;
    squares += difference * difference;
    signs += sign;
    signed_sum += sign * difference;
  }
};

// Returns |Σd| / √Σd², which for equal n orders like Student's |t|: t² = (n−1)u/(n−u) where
// u is the square of this value. Finite even if t isn't: √n, the maximum, for equal differences, 0
// if all are 0.
double Studentized(const SignedSums& sums, double shift);

struct Shifts {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = -kInfinity, high = kInfinity;
};

// Returns the shifts at which `pattern` is at least as far from 0 as `seen`, which has flipped no
// pair: disjoint and ascending ranges, whose ends are roots of a polynomial of degree four. A
// pattern that is empty, or has flipped none or all of its pairs, is at least as far at every
// shift, because no large shift distinguishes it from `seen`.
std::vector<Shifts> AtLeastAsFar(const SignedSums& pattern, const SignedSums& seen);

// Returns the largest shift that at least `least` >= 1 of the ranges contain; −∞ if there is none.
double LargestShared(const std::vector<Shifts>& ranges, size_t least);

// Returns the end of the shifts from 0 upwards that at least `least` >= 1 of the ranges contain.
// They must contain 0.
double EndOfShared(const std::vector<Shifts>& ranges, size_t least);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_STUDENTIZED_H_
