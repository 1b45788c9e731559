#include "server/report/compare/rechoosing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/report/compare/paired.h"

namespace ablate::report {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Flips = std::vector<char>;  // per seed, whether its columns change hands

// What both settings' choices under one pattern come to.
struct Outcome {
  size_t pairs = 0, converged = 0;  // seeds with two results, and with two that converged
  double difference = 0;            // mean over the converged, in losses
  double share = 0;     // by how much of a shift of the setting's values that would change
  double net_wins = 0;  // of the setting
};

// Results of both settings as losses, seed by seed, so that a pattern is a matter of which of the
// two is read.
class Columns {
 public:
  Columns(const TunedPair& pair, Better better)
      : candidates_(pair.candidates),
        seeds_(pair.seeds),
        trials_{Losses(pair.setting, better), Losses(pair.baseline, better)},
        choices_{Losses(pair.setting_choices, pair.choice_better),
                 Losses(pair.baseline_choices, pair.choice_better)},
        chosen_by_(pair.setting_choices.empty() ? trials_ : choices_) {
    for (size_t seed = 0; seed < seeds_; ++seed) {
      if (HasResult(0, seed) && HasResult(1, seed)) {
        flippable_.push_back(seed);
      } else {
        idle_ = idle_ || HasResult(0, seed) || HasResult(1, seed);
      }
    }
  }

  const std::vector<size_t>& flippable() const { return flippable_; }
  // Whether a seed takes part that can't be flipped. Without one, a pattern and its opposite score
  // alike.
  bool has_idle() const { return idle_; }
  double LargestDifference() const;
  Outcome Under(const Flips& flips) const;

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
  const std::vector<Trial>* const chosen_by_;  // one of the two
  std::vector<size_t> flippable_;
  bool idle_ = false;
};

// Of any two results of one seed: what sums may be rounded by is measured with it.
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

// A candidate's results summed; what one seed gave can be taken out again.
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

// The trial that each seed is given by its other seeds, as LeaveOneSeedOut does; null without one.
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
      const Standing standing = totals[candidate].Without(ChoiceAt(side, flips, candidate, seed));
      if (!Beats(standing, best)) continue;
      best = standing;
      chosen[seed] = At(side, flips, candidate, seed);
    }
    if (best.empty()) chosen[seed] = ChooseHere(side, flips, seed);
  }
  return chosen;
}

// By what the seed itself gave, for want of others.
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

Outcome Columns::Under(const Flips& flips) const {
  const std::vector<const Trial*> own = Choose(0, flips), other = Choose(1, flips);
  Outcome outcome;
  double sum = 0, unflipped = 0;
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
    ++outcome.converged;
    outcome.net_wins += a.value < b.value ? 1 : a.value > b.value ? -1 : 0;
    sum += a.value - b.value;
    unflipped += flips[seed] != 0 ? -1 : 1;
  }
  const auto n = static_cast<double>(outcome.converged);
  outcome.difference = outcome.converged > 0 ? sum / n : 0;
  outcome.share = outcome.converged > 0 ? unflipped / n : 0;
  return outcome;
}

// The patterns that are looked at, the one that was seen aside.
class Patterns {
 public:
  Patterns(const Columns& columns, size_t candidates, size_t seeds,
           const RechoosingOptions& options)
      : flippable_(columns.flippable()),
        exact_(flippable_.size() <= options.exact_up_to),
        random_(options.seed),
        flips_(seeds, 0) {
    constexpr size_t kMostWork = 40'000'000;
    const size_t free = flippable_.size() - (columns.has_idle() || flippable_.empty() ? 0 : 1);
    const size_t work = std::max<size_t>(1, candidates * seeds);
    count_ = exact_ ? (size_t{1} << free) - 1
                    : std::min(options.draws, std::max<size_t>(999, kMostWork / work));
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

// Of one pattern: the shifts δ under which it is as far from 0 as what was seen. |M − rδ| >= |m −
// δ| with |r| <= 1 holds between the two δ where the sides are equal, and m lies between them; with
// |r| = 1 one of the two is infinite.
struct Accepted {
  double low = -kInfinity, high = kInfinity;
};

Accepted AcceptedShifts(double seen, const Outcome& outcome) {
  if (outcome.converged == 0) return {};
  const double one = (seen - outcome.difference) / (1 - outcome.share);
  const double two = (seen + outcome.difference) / (1 + outcome.share);
  if (std::isnan(one) || std::isnan(two)) return {};  // 0 / 0: equal whatever the shift
  return {std::min(one, two), std::max(one, two)};
}

// `accepted` of all patterns but the one seen, which accepts every shift. A shift is kept while
// more than kAlpha of all patterns accept it.
Interval KeptShifts(const std::vector<Accepted>& accepted, Better better) {
  const size_t rejected = static_cast<size_t>(
      std::floor(kAlpha * static_cast<double>(accepted.size() + 1) * (1 + kTie)));
  if (rejected == 0 || accepted.size() < rejected) return NoInterval(Undefined::kTooFewPairs);
  std::vector<double> lows, highs;
  for (const Accepted& shifts : accepted) {
    lows.push_back(shifts.low);
    highs.push_back(-shifts.high);
  }
  // One of those that are as far is the pattern seen.
  const auto end = [rejected](std::vector<double>* ends) {
    std::nth_element(ends->begin(), ends->begin() + static_cast<std::ptrdiff_t>(rejected - 1),
                     ends->end());
    return (*ends)[rejected - 1];
  };
  const double low = end(&lows), high = -end(&highs);
  if (std::isinf(low) || std::isinf(high)) return NoInterval(Undefined::kTooFewPairs);
  return better == Better::kHigher ? DefinedInterval(-high, -low) : DefinedInterval(low, high);
}

// Of the two shifts by ±margin the one that is less far from what was seen is accepted by more.
Number Equivalence(const std::vector<Accepted>& accepted, double seen, double margin) {
  if (std::abs(seen) >= margin) return Defined(1);
  size_t most = 0;
  for (const double shift : {-margin, margin}) {
    const auto count = std::count_if(
        accepted.begin(), accepted.end(),
        [shift](const Accepted& shifts) { return shifts.low <= shift && shift <= shifts.high; });
    most = std::max(most, static_cast<size_t>(count));
  }
  return Defined(static_cast<double>(most + 1) / static_cast<double>(accepted.size() + 1) / 2);
}

// A count of patterns that are as far from 0 as what was seen.
class AsFar {
 public:
  AsFar(double seen, double tie) : threshold_(std::abs(seen) - tie) {}

  void Add(double distance) { count_ += static_cast<size_t>(std::abs(distance) >= threshold_); }
  Number Share(size_t patterns) const {
    return Defined(static_cast<double>(count_) / static_cast<double>(patterns));
  }

 private:
  const double threshold_;
  size_t count_ = 1;  // what was seen
};

RechoosingResult NoTest(Undefined reason) {
  return {NoNumber(reason), NoNumber(reason), false, NoNumber(reason), NoInterval(reason)};
}

}  // namespace

RechoosingResult TestByRechoosing(const TunedPair& pair, Better better,
                                  const RechoosingOptions& options) {
  const Columns columns(pair, better);
  const Outcome seen = columns.Under(Flips(pair.seeds, 0));
  if (seen.pairs < 2) return NoTest(Undefined::kTooFewPairs);
  const double largest = columns.LargestDifference();
  if (!std::isfinite(largest * static_cast<double>(pair.seeds))) {
    return NoTest(Undefined::kNonFinite);
  }
  AsFar by_difference(seen.difference, kTie * std::max(std::abs(seen.difference), largest));
  AsFar by_wins(seen.net_wins, 0);
  std::vector<Accepted> accepted;
  Patterns patterns(columns, pair.candidates, pair.seeds, options);
  accepted.reserve(patterns.count());
  for (size_t i = 0; i < patterns.count(); ++i) {
    const Outcome outcome = columns.Under(patterns.Next());
    // Without a pair there is no telling: it counts as far.
    by_difference.Add(outcome.converged > 0 ? outcome.difference : kInfinity);
    by_wins.Add(outcome.net_wins);
    accepted.push_back(AcceptedShifts(seen.difference, outcome));
  }
  RechoosingResult result;
  result.exact = patterns.exact();
  result.p_wins = by_wins.Share(patterns.count() + 1);
  const bool paired = seen.converged >= 2;
  result.p_difference =
      paired ? by_difference.Share(patterns.count() + 1) : NoNumber(Undefined::kTooFewPairs);
  result.p_equivalence = !paired ? NoNumber(Undefined::kTooFewPairs)
                         : options.margin.has_value()
                             ? Equivalence(accepted, seen.difference, *options.margin)
                             : NoNumber(Undefined::kNotRecorded);
  result.interval = paired ? KeptShifts(accepted, better) : NoInterval(Undefined::kTooFewPairs);
  return result;
}

}  // namespace ablate::report
