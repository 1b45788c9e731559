// A sum that carries its rounding error along, so that length and order hardly matter.
#ifndef ABLATE_SERVER_REPORT_COMPENSATED_SUM_H_
#define ABLATE_SERVER_REPORT_COMPENSATED_SUM_H_

#include <cmath>

namespace ablate::report {

// Neumaier's summation: unlike Kahan's it survives a term larger than the sum so far. The terms are
// finite; the total is infinite or NaN if they overflow. A value type, not thread-safe.
class CompensatedSum {
 public:
  void Add(double term) {
    const double total = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - total) + term : (term - total) + sum_;
    sum_ = total;
  }

  // Adds another sum with the error it carries.
  void Add(const CompensatedSum& other) {
    Add(other.sum_);
    lost_ += other.lost_;
  }

  double Total() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPENSATED_SUM_H_
