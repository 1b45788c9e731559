// Tests leave-one-seed-out selection against a literal implementation, seed by seed.
#include "server/report/compare/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr double kInf = std::numeric_limits<double>::infinity();

Trial Converged(double value) { return {Trial::State::kConverged, value}; }
Trial Diverged() { return {Trial::State::kDiverged, 0}; }

// The mean over the other seeds with divergence as +infinity; then the number of divergences; then
// the mean of the rest.
struct Rank {
  double mean = kInf;
  int diverged = 0;
  double rest = kInf;
  bool any = false;
};

Rank RankWithout(const std::vector<Trial>& trials, size_t candidate, size_t seeds, size_t held_out,
                 Better better) {
  Rank rank;
  double sum = 0;
  int converged = 0;
  for (size_t seed = 0; seed < seeds; ++seed) {
    const Trial& trial = trials[candidate * seeds + seed];
    if (seed == held_out || trial.state == Trial::State::kNone) continue;
    rank.any = true;
    if (trial.state == Trial::State::kDiverged) {
      ++rank.diverged;
    } else {
      sum += better == Better::kLower ? trial.value : -trial.value;
      ++converged;
    }
  }
  if (converged > 0) rank.rest = sum / converged;
  if (converged > 0 && rank.diverged == 0) rank.mean = rank.rest;
  return rank;
}

std::optional<size_t> BruteForcePick(const std::vector<Trial>& trials, size_t candidates,
                                     size_t seeds, size_t held_out, Better better) {
  std::vector<Rank> ranks;
  for (size_t i = 0; i < candidates; ++i) {
    ranks.push_back(RankWithout(trials, i, seeds, held_out, better));
  }
  bool all_infinite = true;
  for (const Rank& rank : ranks) all_infinite = all_infinite && std::isinf(rank.mean);
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates; ++i) {
    if (!ranks[i].any) continue;
    if (!best.has_value()) {
      best = i;
      continue;
    }
    const Rank &a = ranks[i], &b = ranks[*best];
    if (all_infinite ? a.diverged < b.diverged || (a.diverged == b.diverged && a.rest < b.rest)
                     : a.mean < b.mean) {
      best = i;
    }
  }
  return best;
}

TEST(LeaveOneSeedOutTest, EqualsTheOracle) {
  // R(91, [3, 2, 6]) + 2.5: learning rate, setting, seed.
  const std::vector<double> losses = OracleR(91, 36, 2.5, 1);
  const size_t expected[2][6] = {{1, 1, 1, 2, 1, 1}, {0, 0, 2, 2, 0, 2}};
  for (size_t setting = 0; setting < 2; ++setting) {
    std::vector<Trial> trials;
    for (size_t learning_rate = 0; learning_rate < 3; ++learning_rate) {
      for (size_t seed = 0; seed < 6; ++seed) {
        trials.push_back(Converged(losses[(learning_rate * 2 + setting) * 6 + seed]));
      }
    }
    const Selection selection = LeaveOneSeedOut(trials, 3, 6, Better::kLower);
    for (size_t seed = 0; seed < 6; ++seed) {
      EXPECT_THAT(selection.picks[seed], Optional(expected[setting][seed])) << setting << seed;
    }
  }
}

TEST(LeaveOneSeedOutTest, EqualsBruteForce) {
  for (uint64_t round = 0; round < 500; ++round) {
    RandomStream random(round);
    const size_t candidates = 1 + random.Below(6), seeds = 2 + random.Below(9);
    const double divergence = round % 3 == 0 ? .7 : .15, missing = round % 4 == 0 ? .2 : 0;
    std::vector<Trial> trials;
    for (size_t i = 0; i < candidates * seeds; ++i) {
      // Eighths, so that sums are exact and ties are frequent.
      Trial trial = Converged(std::floor(random.Uniform() * 32) / 8);
      if (random.Uniform() < divergence) trial = Diverged();
      if (random.Uniform() < missing) trial = Trial();
      trials.push_back(trial);
    }
    const Better better = round % 2 == 0 ? Better::kLower : Better::kHigher;
    const Selection selection = LeaveOneSeedOut(trials, candidates, seeds, better);
    for (size_t seed = 0; seed < seeds; ++seed) {
      const auto expected = BruteForcePick(trials, candidates, seeds, seed, better);
      if (expected.has_value()) {
        EXPECT_EQ(selection.picks[seed], expected) << round << " " << seed;
      }
    }
  }
}

TEST(LeaveOneSeedOutTest, NeverLooksAtTheSeedItself) {
  std::vector<Trial> trials;
  for (const double loss : OracleR(4, 4 * 7, 2, 1)) trials.push_back(Converged(loss));
  const Selection before = LeaveOneSeedOut(trials, 4, 7, Better::kLower);
  for (size_t candidate = 0; candidate < 4; ++candidate) {
    trials[candidate * 7 + 3] = candidate % 2 == 0 ? Diverged() : Converged(-100);
  }
  EXPECT_EQ(LeaveOneSeedOut(trials, 4, 7, Better::kLower).picks[3], before.picks[3]);
}

TEST(LeaveOneSeedOutTest, DivergedIsWorseThanAnyLoss) {
  const std::vector<Trial> trials = {Converged(1), Converged(1), Diverged(),
                                     Converged(9), Converged(9), Converged(9)};
  const Selection selection = LeaveOneSeedOut(trials, 2, 3, Better::kLower);
  EXPECT_THAT(selection.picks, ElementsAre(Optional(1u), Optional(1u), Optional(0u)));
  EXPECT_THAT(selection.counts, ElementsAre(1, 2));
}

TEST(LeaveOneSeedOutTest, TakesTheFewestDivergedWhereAllDiverge) {
  // For each candidate at least one of the other three seeds diverges.
  const std::vector<Trial> trials = {
      Diverged(), Diverged(), Diverged(),   Converged(9),  // two or three
      Diverged(), Diverged(), Converged(7), Converged(7),  // one or two
      Diverged(), Diverged(), Converged(6), Converged(6),  // the same, and better
      Diverged(), Diverged(), Converged(6), Converged(6)};
  const Selection selection = LeaveOneSeedOut(trials, 4, 4, Better::kLower);
  for (const auto& pick : selection.picks) EXPECT_THAT(pick, Optional(2u));
}

TEST(LeaveOneSeedOutTest, TakesTheFirstOfEquals) {
  const std::vector<Trial> all_diverged(6, Diverged());
  const Selection diverged = LeaveOneSeedOut(all_diverged, 2, 3, Better::kLower);
  for (const auto& pick : diverged.picks) EXPECT_THAT(pick, Optional(0u));
  // 0.1 + 0.2 against 0.3 + 0: equal, whatever the last bit.
  const std::vector<Trial> tenths = {Converged(.1), Converged(.2), Converged(9),
                                     Converged(.3), Converged(0),  Converged(9)};
  EXPECT_THAT(LeaveOneSeedOut(tenths, 2, 3, Better::kLower).picks[2], Optional(0u));
  std::vector<Trial> swapped(tenths.begin() + 3, tenths.end());
  swapped.insert(swapped.end(), tenths.begin(), tenths.begin() + 3);
  EXPECT_THAT(LeaveOneSeedOut(swapped, 2, 3, Better::kLower).picks[2], Optional(0u));
}

TEST(LeaveOneSeedOutTest, AHugeLossOnOneSeedDoesNotBlurTheOthers) {
  const std::vector<Trial> trials = {Converged(1e30), Converged(2), Converged(2),
                                     Converged(1e30), Converged(1), Converged(1)};
  EXPECT_THAT(LeaveOneSeedOut(trials, 2, 3, Better::kLower).picks[0], Optional(1u));
}

TEST(LeaveOneSeedOutTest, SaysWhenTheOnlySeedChoseForItself) {
  const Selection selection = LeaveOneSeedOut({Converged(3), Converged(2)}, 2, 1, Better::kLower);
  EXPECT_THAT(selection.picks[0], Optional(1u));
  EXPECT_EQ(selection.same_seed, 1u);
  EXPECT_EQ(LeaveOneSeedOut({Converged(3)}, 1, 1, Better::kLower).same_seed, 0u);
  const Selection nothing = LeaveOneSeedOut({Trial(), Trial()}, 2, 1, Better::kLower);
  EXPECT_EQ(nothing.picks[0], std::nullopt);
  EXPECT_THAT(nothing.counts, ElementsAre(0, 0));
  EXPECT_TRUE(LeaveOneSeedOut({}, 0, 0, Better::kLower).picks.empty());
}

TEST(LeaveOneSeedOutTest, HigherIsTheMirrorOfLower) {
  std::vector<Trial> losses, gains;
  for (const double loss : OracleR(11, 5 * 8)) {
    losses.push_back(Converged(loss));
    gains.push_back(Converged(-loss));
  }
  EXPECT_EQ(LeaveOneSeedOut(losses, 5, 8, Better::kLower).picks,
            LeaveOneSeedOut(gains, 5, 8, Better::kHigher).picks);
}

TEST(CountEdgePicksTest, CountsBothEndsWhateverTheOrder) {
  Selection selection;
  selection.counts = {4, 2, 5, 1};
  const std::optional<EdgePicks> edges = CountEdgePicks({.01, .001, .1, .001}, selection);
  ASSERT_TRUE(edges.has_value());
  EXPECT_EQ(edges->lowest, .001);
  EXPECT_EQ(edges->at_lowest, 3u);
  EXPECT_EQ(edges->highest, .1);
  EXPECT_EQ(edges->at_highest, 5u);
}

TEST(CountEdgePicksTest, NeedsThreeValues) {
  Selection selection;
  selection.counts = {1, 2, 3};
  EXPECT_FALSE(CountEdgePicks({.1, .2, .2}, selection).has_value());
}

}  // namespace
}  // namespace ablate::report
