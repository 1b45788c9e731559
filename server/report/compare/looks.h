// Tests a row again after each new pair, with an error rate that holds for all looks together, and
// sets the levels of a session of changes. Pure functions, safe from any thread.
// docs/explanation/statistics.md has the rule, its error rates and its power.
#ifndef ABLATE_SERVER_REPORT_COMPARE_LOOKS_H_
#define ABLATE_SERVER_REPORT_COMPARE_LOOKS_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "server/report/compare/selection.h"

namespace ablate::report {

// Bets on the sign of each difference in units of the scale, and their shares of the start capital.
// Six equal differences are the fewest that give p <= 0.05, as in the sign-flip test.
inline constexpr std::array<double, 3> kBets = {0.3, 1, 2.5};
inline constexpr std::array<double, 3> kBetShares = {0.1, 0.45, 0.45};

// Evidence of a sequence of paired differences. E is the capital of a gambler who starts with 1 and
// bets fairly if the settings are exchangeable (a test martingale; Ville 1939, Shafer & Vovk 2019).
struct Looks {
  // Capital of each bet as a logarithm, without its share: on "better" and on "worse".
  std::array<double, 3> better = {}, worse = {};
  // Finite differences so far, ties included: those that the scale is of.
  size_t scaled = 0;
  // Valid at any number of looks: 1 over the largest E so far, at most 1. Two-sided, and for "the
  // row is better" and "the row is worse".
  double p = 1, p_better = 1, p_worse = 1;

  // Return log E now, of the two one-sided bets and of the two-sided one. 0 without pairs.
  double LogBetter() const;
  double LogWorse() const;
  double LogEither() const;
};

// Bets on each difference, row minus baseline, in the order given, which must not depend on the
// results. The factor of pair i is 2/(1 + exp(-2 bet d_i/s)), where s is the root mean square of
// the finite d_1 … d_i. Ties have the factor 1. A difference of ±infinity, of a pair in which one
// run diverged, bets as ±s. With Better::kNeither, higher counts as better. NaN isn't allowed.
Looks LookAtEachPair(absl::Span<const double> differences, Better better);

enum class Sides { kBetter, kEither };

// Returns the fewest further pairs with which p_better or p could be at most `level`, in (0, 1): by
// the largest factors that differences of any size can give. 0 if it already is.
size_t MorePairsToDecide(const Looks& looks, Sides sides, double level);

// Returns the fewest pairs with which the two-sided sign-flip test can reach `level`, in (0, 1):
// 2^(1−n) <= level.
size_t FewestPairsOfSignFlip(double level);

// Returns the one-sided level of the j-th change of a session, j >= 1, for which m = `planned` >= 1
// changes are planned: level·m/((j+m−1)(j+m)). The levels of an endless session add up to `level`,
// and the probability that it keeps any change without an effect is at most their sum.
double LevelOfChange(size_t j, size_t planned, double level);

// A session drops a change if E for "better" is below this, or without a decision after as many
// pairs.
inline constexpr double kDropBelow = 0.5;
inline constexpr size_t kMostPairs = 60;

// Returns true if a session should drop the change that has these differences.
bool IsFutile(const Looks& looks, size_t pairs);

// Differences of tuned settings, row minus baseline, by seed. The value for a seed is selected on
// the earlier seeds.
struct TunedLooks {
  std::vector<double> selected;  // each setting at its own selected value
  // Mean of the differences at both selected values: exchanging the two settings' runs of a seed
  // changes its sign, so its test is exact if the settings are exchangeable.
  std::vector<double> exchangeable;
};

// Selects from losses, lower is better, as [seed][candidate] with the same candidates in both, at
// least one; infinity for a diverged run. On the first seed both settings have the first candidate.
// p of the row at any look is the larger p of the two sequences.
TunedLooks SelectOnEarlierSeeds(absl::Span<const std::vector<double>> row,
                                absl::Span<const std::vector<double>> baseline);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_LOOKS_H_
