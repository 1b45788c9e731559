// Tests distances of differences from 0 after a shift, against Student's t and a fine grid of
// shifts.
#include "server/report/compare/studentized.h"

#include <gtest/gtest.h>

#include <cmath>

#include "server/report/compare/paired.h"
#include "tests/report/compare/noise.h"

namespace ablate::report {
namespace {

using Differences = std::vector<double>;

SignedSums Sum(const Differences& differences, unsigned flipped = 0) {
  SignedSums sums;
  for (size_t i = 0; i < differences.size(); ++i) {
    sums.Add(differences[i], (flipped >> i & 1) != 0);
  }
  return sums;
}

TEST(StudentizedTest, OrdersAsStudentsT) {
  const Differences differences = {.3, -.1, .4, .2, .5};
  for (const double shift : {-1., 0., .1, .3, 7.}) {
    Differences shifted;
    for (const double difference : differences) shifted.push_back(difference - shift);
    const double u = std::pow(Studentized(Sum(differences), shift), 2);
    const double t = ComparePairs(shifted, Differences(5), 0).t.value;
    EXPECT_NEAR(4 * u / (5 - u), t * t, 1e-9 * (1 + t * t)) << shift;
  }
}

TEST(StudentizedTest, IsFiniteWhereStudentsTIsNot) {
  EXPECT_DOUBLE_EQ(Studentized(Sum({.5, .5, .5, .5}), 0), 2);
  EXPECT_EQ(Studentized(Sum({0, 0, 0}), 0), 0);
  EXPECT_EQ(Studentized(Sum({.5, .5}), .5), 0);
  EXPECT_EQ(Studentized({}, 1), 0);
}

TEST(StudentizedTest, TakesAShiftOffFlippedPairsBackwards) {
  EXPECT_DOUBLE_EQ(Studentized(Sum({1, 2, -4}, 0b100), .5),
                   Studentized(Sum({.5, 1.5, -3.5}, 0), 0));
}

bool Contains(const std::vector<Shifts>& ranges, double shift) {
  for (const Shifts& shifts : ranges) {
    if (shifts.low <= shift && shift <= shifts.high) return true;
  }
  return false;
}

TEST(StudentizedTest, FindsTheShiftsAtWhichAPatternIsAsFar) {
  Noise noise(3);
  size_t apart = 0;
  for (int repetition = 0; repetition < 300; ++repetition) {
    // A third of the patterns are nearly equal once shifted by 4, far from the observed zero.
    const unsigned flipped = 1 + repetition % 30;
    Differences seen, pattern;
    for (int i = 0; i < 6; ++i) {
      seen.push_back(noise());
      pattern.push_back(repetition % 3 > 0 ? 2 * noise()
                                           : 3 + ((flipped >> i & 1) != 0 ? -4 : 4) + .3 * noise());
    }
    const SignedSums from = Sum(seen), to = Sum(pattern, flipped);
    const std::vector<Shifts> ranges = AtLeastAsFar(to, from);
    apart += ranges.size() > 1;
    for (double shift = -30; shift <= 30; shift += .01) {
      const double ahead = Studentized(to, shift) - Studentized(from, shift);
      if (std::abs(ahead) < 1e-9) continue;
      ASSERT_EQ(Contains(ranges, shift), ahead > 0) << repetition << " at " << shift;
    }
  }
  EXPECT_GT(apart, 10u) << "of ranges that are apart";
}

TEST(StudentizedTest, IsAsFarEverywhereWherePairsAreFlippedAlike) {
  const Differences seen = {.3, -.1, .4};
  for (const std::vector<Shifts>& ranges :
       {AtLeastAsFar(Sum(seen), Sum(seen)), AtLeastAsFar(Sum({-.3, .1, -.4}, 0b111), Sum(seen)),
        AtLeastAsFar(Sum({.1, -.1, .2}), Sum(seen)), AtLeastAsFar({}, Sum(seen))}) {
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].low, -Shifts::kInfinity);
    EXPECT_EQ(ranges[0].high, Shifts::kInfinity);
  }
}

TEST(StudentizedTest, FindsTheLargestShiftThatEnoughShare) {
  const std::vector<Shifts> ranges = {{0, 2}, {1, 5}, {6, 9}, {7, 8}, {-1, 1}};
  EXPECT_EQ(LargestShared(ranges, 1), 9);
  EXPECT_EQ(LargestShared(ranges, 2), 8);
  EXPECT_EQ(LargestShared(ranges, 3), 1);
  EXPECT_EQ(LargestShared(ranges, 4), -Shifts::kInfinity);
  EXPECT_EQ(LargestShared({{}, {0, 1}}, 1), Shifts::kInfinity);
}

TEST(StudentizedTest, FindsWhereTooFewShareTheShifts) {
  const std::vector<Shifts> ranges = {{-3, 2}, {-1, 1}, {2, 5}, {-2, 1}, {1, 4}, {6, 9}, {7, 8}};
  EXPECT_EQ(EndOfShared(ranges, 3), 1) << "only two go on";
  EXPECT_EQ(EndOfShared(ranges, 2), 4) << "one begins where another ends";
  EXPECT_EQ(EndOfShared(ranges, 1), 5) << "not 9: there is a hole";
  EXPECT_EQ(EndOfShared({{}, {-1, 1}}, 1), Shifts::kInfinity);
  EXPECT_EQ(EndOfShared({{}, {-1, 1}}, 2), 1);
}

}  // namespace
}  // namespace ablate::report
