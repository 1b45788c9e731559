#include "server/report/compare/looks.h"

#include <algorithm>
#include <cmath>

namespace ablate::report {
namespace {

using Capital = std::array<double, kBets.size()>;

constexpr size_t kMostFurtherPairs = 10000;

// Returns log(2/(1 + exp(-2z))).
double LogFactor(double z) {
  return M_LN2 + std::min(2 * z, 0.0) - std::log1p(std::exp(-2 * std::abs(z)));
}

// Returns log(exp(a) + exp(b)).
double LogSum(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

double LogMixture(const Capital& capital) {
  double sum = capital[0] + std::log(kBetShares[0]);
  for (size_t i = 1; i < capital.size(); ++i) {
    sum = LogSum(sum, capital[i] + std::log(kBetShares[i]));
  }
  return sum;
}

// Bets on a difference of x scales in favour of the row.
void BetOn(double x, Looks* looks) {
  for (size_t i = 0; i < kBets.size(); ++i) {
    looks->better[i] += LogFactor(kBets[i] * x);
    looks->worse[i] += LogFactor(-kBets[i] * x);
  }
}

double AtMostOne(double log_evidence) { return std::exp(-std::max(log_evidence, 0.0)); }

// Root mean square of numbers of any size, without overflow.
class RunningScale {
 public:
  void Add(double value) {
    const double size = std::abs(value);
    if (size > largest_) {
      squares_ *= (largest_ / size) * (largest_ / size);
      largest_ = size;
    }
    if (size > 0) squares_ += (size / largest_) * (size / largest_);
    ++n_;
  }
  size_t n() const { return n_; }

  // Returns value/RMS; `value` isn't 0 and has been added.
  double InScales(double value) const {
    return value / largest_ / std::sqrt(squares_ / static_cast<double>(n_));
  }

 private:
  double largest_ = 0, squares_ = 0;  // the sum of squares in units of the largest
  size_t n_ = 0;
};

// Returns the fewest pairs, all in one direction, after which `looks` reaches the level.
size_t PairsInOneDirection(Looks looks, double direction, Sides sides, double threshold) {
  size_t more = 0;
  while (more < kMostFurtherPairs) {
    if ((sides == Sides::kBetter ? looks.LogBetter() : looks.LogEither()) >= threshold) break;
    ++more;
    ++looks.scaled;
    // The largest |d_i|/s of i pairs is √i.
    BetOn(direction * std::sqrt(static_cast<double>(looks.scaled)), &looks);
  }
  return more;
}

// Returns the first candidate with the fewest infinite losses and then the least mean of the
// others on seeds before `end`.
size_t SelectBefore(absl::Span<const std::vector<double>> losses, size_t end) {
  size_t best = 0, fewest = 0;
  double least = 0;
  for (size_t candidate = 0; candidate < losses[0].size(); ++candidate) {
    size_t diverged = 0;
    double sum = 0;
    for (size_t seed = 0; seed < end; ++seed) {
      const double loss = losses[seed][candidate];
      if (std::isfinite(loss)) {
        sum += loss;
      } else {
        ++diverged;
      }
    }
    const double mean = diverged == end ? 0 : sum / static_cast<double>(end - diverged);
    if (candidate == 0 || diverged < fewest || (diverged == fewest && mean < least)) {
      best = candidate, fewest = diverged, least = mean;
    }
  }
  return best;
}

// Returns a − b, 0 for two diverged runs.
double Apart(double a, double b) { return std::isinf(a) && std::isinf(b) ? 0 : a - b; }

}  // namespace

double Looks::LogBetter() const { return LogMixture(better); }
double Looks::LogWorse() const { return LogMixture(worse); }
double Looks::LogEither() const { return LogSum(LogBetter(), LogWorse()) - M_LN2; }

Looks LookAtEachPair(absl::Span<const double> differences, Better better) {
  Looks looks;
  RunningScale scale;
  const double sign = better == Better::kLower ? -1 : 1;
  for (const double difference : differences) {
    if (std::isfinite(difference)) scale.Add(difference);
    looks.scaled = scale.n();
    if (difference == 0) continue;
    BetOn(sign * (std::isinf(difference) ? std::copysign(1.0, difference)
                                         : scale.InScales(difference)),
          &looks);
    looks.p = std::min(looks.p, AtMostOne(looks.LogEither()));
    looks.p_better = std::min(looks.p_better, AtMostOne(looks.LogBetter()));
    looks.p_worse = std::min(looks.p_worse, AtMostOne(looks.LogWorse()));
  }
  return looks;
}

size_t MorePairsToDecide(const Looks& looks, Sides sides, double level) {
  if ((sides == Sides::kBetter ? looks.p_better : looks.p) <= level) return 0;
  const double threshold = -std::log(level);
  const size_t better = PairsInOneDirection(looks, 1, sides, threshold);
  if (sides == Sides::kBetter) return better;
  return std::min(better, PairsInOneDirection(looks, -1, sides, threshold));
}

size_t FewestPairsOfSignFlip(double level) {
  size_t n = 1;
  double p = 1;  // two-sided, of n pairs with one sign
  while (p > level) {
    p /= 2;
    ++n;
  }
  return n;
}

double LevelOfChange(size_t j, size_t planned, double level) {
  const auto change = static_cast<double>(j), m = static_cast<double>(planned);
  return level * m / ((change + m - 1) * (change + m));
}

bool IsFutile(const Looks& looks, size_t pairs) {
  return pairs >= kMostPairs || looks.LogBetter() < std::log(kDropBelow);
}

TunedLooks SelectOnEarlierSeeds(absl::Span<const std::vector<double>> row,
                                absl::Span<const std::vector<double>> baseline) {
  TunedLooks looks;
  for (size_t seed = 0; seed < row.size(); ++seed) {
    const size_t own = SelectBefore(row, seed), other = SelectBefore(baseline, seed);
    looks.selected.push_back(Apart(row[seed][own], baseline[seed][other]));
    const double at_own = Apart(row[seed][own], baseline[seed][own]);
    const double at_other = Apart(row[seed][other], baseline[seed][other]);
    const double sum = at_own + at_other;
    looks.exchangeable.push_back(std::isnan(sum) ? 0 : sum / 2);
  }
  return looks;
}

}  // namespace ablate::report
