#include "server/report/compare/reselection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/report/compare/paired.h"
#include "server/report/compare/studentized.h"

namespace ablate::report {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// With fewer pairs the range around the mean alone covers the truth too rarely (ADR 0011).
constexpr double kPairsForOneRange = 8;

using Flips = std::vector<char>;  // per seed, whether the settings exchange their runs

// Transformation of differences before summation, so that squares neither overflow nor cancel.
struct Standard {
  double center = 0, unit = 1;  // of the shifted setting's values, in losses
};

// Result of both settings' selections under one pattern.
struct Outcome {
  size_t pairs = 0;        // seeds with two results
  SignedSums differences;  // over the seeds on which both converged, in losses, scaled
  double net_wins = 0;     // for the setting
};

// Results of both settings as losses, by seed, so that a pattern only determines which of the two
// is read.
class Columns {
 public:
  Columns(const TunedPair& pair, Better better)
      : candidates_(pair.candidates),
        seeds_(pair.seeds),
        trials_{Losses(pair.setting, better), Losses(pair.baseline, better)},
        choices_{Losses(pair.setting_choices, pair.choice_better),
                 Losses(pair.baseline_choices, pair.choice_better)},
        chosen_by_(pair.setting_choices.empty() ? trials_ : choices_) {
    for (const size_t side : {0, 1}) {
      tried_[side].assign(candidates_, 0);
      for (size_t i = 0; i < chosen_by_[side].size(); ++i) {
        if (chosen_by_[side][i].state != Trial::State::kNone) tried_[side][i / seeds_] = 1;
      }
    }
    for (size_t seed = 0; seed < seeds_; ++seed) {
      if (HasResult(0, seed) && HasResult(1, seed)) {
        flippable_.push_back(seed);
      } else {
        idle_ = idle_ || HasResult(0, seed) || HasResult(1, seed);
      }
    }
  }

  const std::vector<size_t>& flippable() const { return flippable_; }
  // Returns true if a seed that can't be flipped takes part. Without one, a pattern and its
  // opposite give the same result.
  bool has_idle() const { return idle_; }
  double LargestDifference() const;
  Outcome Under(const Flips& flips, const Standard& scale) const;

 private:
  static std::vector<Trial> Losses(std::vector<Trial> trials, Better better) {
    for (Trial& trial : trials) {
      if (better == Better::kHigher) trial.value = -trial.value;
    }
    return trials;
  }
  const Trial& ChoiceAt(size_t side, const Flips& flips, size_t candidate, size_t seed) const {
    return chosen_by_[side ^ static_cast<size_t>(flips[seed])][candidate * seeds_ + seed];
  }
  const Trial* At(size_t side, const Flips& flips, size_t candidate, size_t seed) const {
    return &trials_[side ^ static_cast<size_t>(flips[seed])][candidate * seeds_ + seed];
  }
  // Returns true if the setting whose runs a side has on a seed was tried at a candidate: if the
  // two were tried at different values, exchanged runs keep their own candidates.
  bool IsTried(size_t side, const Flips& flips, size_t candidate, size_t seed) const {
    return tried_[side ^ static_cast<size_t>(flips[seed])][candidate] != 0;
  }
  bool HasResult(size_t side, size_t seed) const {
    for (size_t candidate = 0; candidate < candidates_; ++candidate) {
      if (chosen_by_[side][candidate * seeds_ + seed].state != Trial::State::kNone) return true;
    }
    return false;
  }
  std::vector<const Trial*> Choose(size_t side, const Flips& flips) const;
  const Trial* ChooseHere(size_t side, const Flips& flips, size_t seed) const;

  const size_t candidates_, seeds_;
  const std::vector<Trial> trials_[2], choices_[2];
  const std::vector<Trial>* const chosen_by_;  // points to one of the two
  std::vector<char> tried_[2];                 // [candidates], by setting
  std::vector<size_t> flippable_;
  bool idle_ = false;
};

// Returns the largest difference between two results of a seed, the scale of the sums' rounding.
double Columns::LargestDifference() const {
  double largest = 0;
  for (size_t seed = 0; seed < seeds_; ++seed) {
    double low = kInfinity, high = -kInfinity;
    for (const std::vector<Trial>& trials : trials_) {
      for (size_t candidate = 0; candidate < candidates_; ++candidate) {
        const Trial& trial = trials[candidate * seeds_ + seed];
        if (trial.state != Trial::State::kConverged) continue;
        low = std::min(low, trial.value);
        high = std::max(high, trial.value);
      }
    }
    if (high > low) largest = std::max(largest, high - low);
  }
  return largest;
}

// Sum of a candidate's results, from which one seed's can be removed.
struct Total {
  double losses = 0;
  size_t converged = 0, diverged = 0;

  void Add(const Trial& trial) {
    if (trial.state == Trial::State::kConverged) losses += trial.value;
    converged += trial.state == Trial::State::kConverged;
    diverged += trial.state == Trial::State::kDiverged;
  }
  Standing Without(const Trial& trial) const {
    const bool counts = trial.state == Trial::State::kConverged;
    const size_t left = converged - static_cast<size_t>(counts);
    const double rest = losses - (counts ? trial.value : 0);
    return {left > 0 ? rest / static_cast<double>(left) : 0, left,
            diverged - static_cast<size_t>(trial.state == Trial::State::kDiverged)};
  }
};

// Returns the trial that leave-one-seed-out selection gives each seed, as LeaveOneSeedOut does;
// null without one.
std::vector<const Trial*> Columns::Choose(size_t side, const Flips& flips) const {
  std::vector<Total> totals(candidates_);
  for (size_t candidate = 0; candidate < candidates_; ++candidate) {
    for (size_t seed = 0; seed < seeds_; ++seed) {
      totals[candidate].Add(ChoiceAt(side, flips, candidate, seed));
    }
  }
  std::vector<const Trial*> chosen(seeds_, nullptr);
  for (size_t seed = 0; seed < seeds_; ++seed) {
    Standing best;
    for (size_t candidate = 0; candidate < candidates_; ++candidate) {
      if (!IsTried(side, flips, candidate, seed)) continue;
      const Standing standing = totals[candidate].Without(ChoiceAt(side, flips, candidate, seed));
      if (!Beats(standing, best)) continue;
      best = standing;
      chosen[seed] = At(side, flips, candidate, seed);
    }
    if (best.empty()) chosen[seed] = ChooseHere(side, flips, seed);
  }
  return chosen;
}

// Selects by the seed's own results if there are no others.
const Trial* Columns::ChooseHere(size_t side, const Flips& flips, size_t seed) const {
  Standing best;
  const Trial* chosen = nullptr;
  for (size_t candidate = 0; candidate < candidates_; ++candidate) {
    Total only;
    only.Add(ChoiceAt(side, flips, candidate, seed));
    if (!Beats(only.Without({}), best)) continue;
    best = only.Without({});
    chosen = At(side, flips, candidate, seed);
  }
  return chosen;
}

Outcome Columns::Under(const Flips& flips, const Standard& scale) const {
  const std::vector<const Trial*> own = Choose(0, flips), other = Choose(1, flips);
  Outcome outcome;
  for (size_t seed = 0; seed < seeds_; ++seed) {
    if (own[seed] == nullptr || other[seed] == nullptr) continue;
    const Trial &a = *own[seed], &b = *other[seed];
    if (a.state == Trial::State::kNone || b.state == Trial::State::kNone) continue;
    ++outcome.pairs;
    if (a.state == Trial::State::kDiverged || b.state == Trial::State::kDiverged) {
      outcome.net_wins += static_cast<double>(b.state == Trial::State::kDiverged) -
                          static_cast<double>(a.state == Trial::State::kDiverged);
      continue;
    }
    const double difference = DifferenceOf(a.value, b.value);
    outcome.net_wins += difference < 0 ? 1 : difference > 0 ? -1 : 0;
    const bool flipped = flips[seed] != 0;
    const double center = flipped ? -scale.center : scale.center;
    outcome.differences.Add((difference - center) / scale.unit, flipped);
  }
  return outcome;
}

// The patterns to evaluate, without the observed one.
class Patterns {
 public:
  Patterns(const Columns& columns, size_t candidates, size_t seeds,
           const ReselectionOptions& options)
      : flippable_(columns.flippable()),
        exact_(flippable_.size() <= options.exact_up_to),
        random_(kResamplingSeed),
        flips_(seeds, 0) {
    constexpr size_t kDraws = 20000;  // fewer if candidates × seeds are very many
    constexpr size_t kMostWork = 40'000'000;
    const size_t free = flippable_.size() - (columns.has_idle() || flippable_.empty() ? 0 : 1);
    const size_t work = std::max<size_t>(1, candidates * seeds);
    count_ = exact_ ? (size_t{1} << free) - 1
                    : std::min(kDraws, std::max<size_t>(999, kMostWork / work));
  }

  bool exact() const { return exact_; }
  size_t count() const { return count_; }
  const Flips& Next() {
    uint64_t bits = ++next_;
    for (size_t i = 0; i < flippable_.size(); ++i) {
      if (!exact_ && i % 64 == 0) bits = random_.Next();
      flips_[flippable_[i]] = static_cast<char>((bits >> (i % 64)) & 1);
    }
    return flips_;
  }

 private:
  const std::vector<size_t>& flippable_;
  const bool exact_;
  size_t count_ = 0;
  uint64_t next_ = 0;
  RandomStream random_;
  Flips flips_;
};

// Results of all patterns, the observed one first.
class Flipped {
 public:
  Flipped(const TunedPair& pair, const Columns& columns, const Standard& scale, Patterns* patterns)
      : scale_(scale), least_(columns.has_idle() ? 2 : 1) {
    Add(columns.Under(Flips(pair.seeds, 0), scale));
    for (size_t i = 0; i < patterns->count(); ++i) Add(columns.Under(patterns->Next(), scale));
  }

  // Returns the fraction of patterns that are as far from 0 as the observed one after the setting's
  // values are shifted; a pattern without a pair counts, because it can't be compared.
  Number ShareAsFar(double shift) const {
    const double at = (shift - scale_.center) / scale_.unit;
    const double seen = Studentized(differences_[0], at);
    return Share(differences_, [&](const SignedSums& sums) {
      return sums.n == 0 || Studentized(sums, at) >= seen - kTie * std::max(seen, 1.0);
    });
  }
  Number ShareAsFarByWins() const {
    const double seen = std::abs(net_wins_[0]);
    return Share(net_wins_, [&](double net_wins) { return std::abs(net_wins) >= seen; });
  }
  // A shift is in the interval while more than kAlpha of the patterns are as far.
  Interval KeptShifts(Better better) const;

 private:
  void Add(const Outcome& outcome) {
    differences_.push_back(outcome.differences);
    net_wins_.push_back(outcome.net_wins);
  }
  template <typename T, typename Far>
  Number Share(const std::vector<T>& values, const Far& far) const {
    const auto count = static_cast<size_t>(std::count_if(values.begin(), values.end(), far));
    return Defined(static_cast<double>(std::max(count, least_)) /
                   static_cast<double>(values.size()));
  }

  const Standard scale_;
  // Patterns that count as far in any case: the observed one and, if its opposite gives another
  // result because of seeds that can't be flipped, the opposite, so that n pairs allow the same
  // least p with and without such seeds.
  const size_t least_;
  std::vector<SignedSums> differences_;
  std::vector<double> net_wins_;
};

Interval Flipped::KeptShifts(Better better) const {
  const SignedSums& seen = differences_[0];
  // Centered at their mean, differences are deviations.
  if (seen.squares <= seen.n * kTie * kTie) return NoInterval(Undefined::kZeroVariance);
  const auto rejected = static_cast<size_t>(
      std::floor(kAlpha * static_cast<double>(differences_.size()) * (1 + kTie)));
  if (rejected < least_) return NoInterval(Undefined::kTooFewPairs);
  // Number of the other patterns that must be as far, because the observed one always is.
  std::vector<Shifts> far, mirrored;
  for (size_t i = 1; i < differences_.size(); ++i) {
    for (const Shifts& shifts : AtLeastAsFar(differences_[i], seen)) {
      far.push_back(shifts);
      mirrored.push_back({-shifts.high, -shifts.low});
    }
  }
  const auto end = seen.n < kPairsForOneRange ? LargestShared : EndOfShared;
  const double above = scale_.unit * end(far, rejected);
  const double below = scale_.unit * end(mirrored, rejected);
  const double high = WithoutRounding(scale_.center + above, std::abs(scale_.center));
  const double low = WithoutRounding(scale_.center - below, std::abs(scale_.center));
  if (std::isinf(low) || std::isinf(high)) return NoInterval(Undefined::kTooFewPairs);
  return better == Better::kHigher ? DefinedInterval(-high, -low) : DefinedInterval(low, high);
}

// The one of the two shifts by ±margin that is nearer to the observed difference is accepted by
// more patterns.
Number Equivalence(const Flipped& flipped, double mean, double margin) {
  if (std::abs(mean) >= margin) return Defined(1);
  return Defined(std::max(flipped.ShareAsFar(-margin).value, flipped.ShareAsFar(margin).value) / 2);
}

ReselectionResult NoTest(Undefined reason) {
  return {NoNumber(reason), NoNumber(reason), false, NoNumber(reason), NoInterval(reason)};
}

}  // namespace

ReselectionResult TestByReselection(const TunedPair& pair, Better better,
                                    const ReselectionOptions& options) {
  const Columns columns(pair, better);
  const Outcome seen = columns.Under(Flips(pair.seeds, 0), {});
  if (seen.pairs < 2) return NoTest(Undefined::kTooFewPairs);
  const double largest = columns.LargestDifference();
  if (!std::isfinite(largest * static_cast<double>(pair.seeds))) {
    return NoTest(Undefined::kNonFinite);
  }
  const bool paired = seen.differences.n >= 2;
  const double mean = paired ? seen.differences.sum / seen.differences.n : 0;
  Patterns patterns(columns, pair.candidates, pair.seeds, options);
  const Flipped flipped(pair, columns, {mean, largest > 0 ? largest : 1}, &patterns);
  ReselectionResult result = NoTest(Undefined::kTooFewPairs);
  result.exact = patterns.exact();
  result.p_wins = flipped.ShareAsFarByWins();
  if (!paired) return result;
  result.p_difference = flipped.ShareAsFar(0);
  result.p_equivalence = options.margin.has_value() ? Equivalence(flipped, mean, *options.margin)
                                                    : NoNumber(Undefined::kNotRecorded);
  result.interval = flipped.KeptShifts(better);
  return result;
}

}  // namespace ablate::report
