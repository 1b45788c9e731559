// Tests pairs: sign flips against enumeration, ties and symmetries; bootstrap intervals from the
// oracle's draws and from our own; texts about paired differences.
#include "server/report/compare/paired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/docs_page.h"
#include "tests/report/compare/oracle_stream.h"

namespace ablate::report {
namespace {

// By definition: every pattern, each sum computed separately.
double BruteForce(const std::vector<double>& differences) {
  double observed = 0;
  for (const double difference : differences) observed += difference;
  int reached = 0;
  const int patterns = 1 << differences.size();
  for (int pattern = 0; pattern < patterns; ++pattern) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i) {
      sum += (pattern >> i & 1) != 0 ? differences[i] : -differences[i];
    }
    reached += std::abs(sum) >= std::abs(observed) * (1 - 1e-12);
  }
  return static_cast<double>(reached) / patterns;
}

TEST(SignFlipTest, EqualsTheOracle) {
  const SignFlipResult result = SignFlipTest(OracleR(81, 10, .03, .05));
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(result.p.value, 30 / 1024.);
}

TEST(SignFlipTest, EqualsEnumeration) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const size_t n = 2 + seed % 13;
    const std::vector<double> differences = OracleR(seed, n, .1 * static_cast<double>(seed % 5), 1);
    EXPECT_EQ(SignFlipTest(differences).p.value, BruteForce(differences)) << seed;
  }
}

TEST(SignFlipTest, CountsTiesOfWholeNumbers) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<double> differences = OracleR(seed, 2 + seed % 11, .2, 3);
    for (double& difference : differences) difference = std::round(difference);
    EXPECT_EQ(SignFlipTest(differences).p.value, BruteForce(differences)) << seed;
  }
}

TEST(SignFlipTest, RoundingDoesNotSplitTies) {
  // 0.3 - 0.2 and 0.1 differ in the last bit; as tenths, every sum is a tie with another.
  const std::vector<double> tenths = {.3 - .2, .1, .1, .7 - .6, -.1};
  EXPECT_EQ(SignFlipTest(tenths).p.value, SignFlipTest({1, 1, 1, 1, -1}).p.value);
  // The observed sum is 0 up to rounding: every pattern reaches it.
  EXPECT_EQ(SignFlipTest({.3, -.1, -.2}).p.value, 1);
}

TEST(SignFlipTest, LeastPIsOneInTwoToTheNMinusOne) {
  for (const size_t n : {5, 6, 8, 10, 20}) {
    EXPECT_EQ(SignFlipTest(std::vector<double>(n, .25)).p.value, std::pow(.5, n - 1.0));
  }
  EXPECT_EQ(SignFlipTest({0, 0, 0}).p.value, 1);
}

TEST(SignFlipTest, DoesNotDependOnOrderOrSign) {
  for (const size_t n : {7, 20, 33}) {
    std::vector<double> differences = OracleR(n, n, .1, 1);
    const double p = SignFlipTest(differences).p.value;
    std::reverse(differences.begin(), differences.end());
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
    std::rotate(differences.begin(), differences.begin() + 3, differences.end());
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
    for (double& difference : differences) difference = -difference;
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
    for (double& difference : differences) difference *= 8;
    EXPECT_EQ(SignFlipTest(differences).p.value, p);
  }
}

TEST(SignFlipTest, DrawsComeNearEnumeration) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<double> differences = OracleR(seed, 17, .2, 1);
    const double exact = SignFlipTest(differences).p.value;
    const SignFlipResult result = SignFlipTest(differences, /*exact_up_to=*/0);
    EXPECT_FALSE(result.exact);
    EXPECT_NEAR(result.p.value, exact, 4 * std::sqrt(exact * (1 - exact) / 1e5) + 1e-5) << seed;
    EXPECT_EQ(SignFlipTest(differences, 0).p.value, result.p.value);
  }
}

TEST(SignFlipTest, ADrawnPIsNeverZero) {
  std::vector<double> differences(100, 1.5);
  differences[0] = 1;
  const SignFlipResult result = SignFlipTest(differences);
  EXPECT_FALSE(result.exact);
  EXPECT_EQ(result.p.value, 1 / 100001.);
}

// SciPy's binomtest(12, 42), as McNemar's exact test of 30 against 12 discordant pairs.
TEST(SignFlipTest, IsMcNemarsTestIfDifferencesHaveOneSize) {
  std::vector<double> differences(1000, 0.0);
  std::fill(differences.begin(), differences.begin() + 30, 1);
  std::fill(differences.begin() + 30, differences.begin() + 42, -1);
  const SignFlipResult result = SignFlipTest(differences);
  EXPECT_TRUE(result.exact);
  EXPECT_NEAR(result.p.value, 0.007915897334896727, 1e-14);
}

TEST(SignFlipTest, IsUndefinedWithReason) {
  EXPECT_EQ(SignFlipTest({}).p.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(SignFlipTest({.5}).p.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(SignFlipTest({.5, std::nan("")}).p.undefined, Undefined::kNonFinite);
  EXPECT_EQ(SignFlipTest({1e308, -1e308, 1e308}).p.undefined, Undefined::kNonFinite);
}

TEST(BootstrapTest, EqualsTheOracleFromItsDraws) {
  std::vector<uint32_t> indices;
  for (const double u : OracleU(82, 2000 * 10)) indices.push_back(static_cast<uint32_t>(10 * u));
  const BootstrapResult result = BootstrapFromIndices(OracleR(81, 10, .03, .05), indices);
  EXPECT_NEAR(result.bias.value, .0100266811, kTolerance);
  EXPECT_NEAR(result.acceleration.value, .02260623002, kTolerance);
  EXPECT_NEAR(result.interval.low, .009118640758, kTolerance);
  EXPECT_NEAR(result.interval.high, .04091196623, kTolerance);
}

TEST(BootstrapTest, CountsHalfOfTheTies) {
  // Resample means: 0, 0.5, 0.5, 1 around an estimate of 0.5: half below, so no bias.
  const BootstrapResult result = BootstrapFromIndices({0, 1}, {0, 0, 0, 1, 1, 0, 1, 1});
  EXPECT_EQ(result.bias.value, 0);
  EXPECT_EQ(result.acceleration.value, 0);
}

TEST(BootstrapTest, CoversTheMeanOfALargeSampleAsTDoes) {
  const std::vector<double> sample = OracleR(9, 400, 5, 1);
  const Summary summary = Summarize(sample);
  const BootstrapResult result = Bootstrap(sample);
  EXPECT_NEAR(result.interval.low, summary.interval.low, .01);
  EXPECT_NEAR(result.interval.high, summary.interval.high, .01);
  EXPECT_EQ(Bootstrap(sample).interval.low, result.interval.low);
}

TEST(BootstrapTest, IsUndefinedWithReason) {
  EXPECT_EQ(Bootstrap({}).interval.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(Bootstrap({1}).interval.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(Bootstrap({1, 1, 1}).interval.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(Bootstrap({1, std::nan("")}).interval.undefined, Undefined::kNonFinite);
  // All resamples above the estimate: no bias can be computed.
  const BootstrapResult one_sided = BootstrapFromIndices({0, 1}, {1, 1, 1, 1});
  EXPECT_EQ(one_sided.bias.undefined, Undefined::kNonFinite);
  EXPECT_EQ(one_sided.interval.undefined, Undefined::kNonFinite);
}

TEST(RandomStreamTest, DrawsBelowABoundEvenly) {
  RandomStream stream(3);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[stream.Below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * std::sqrt(10000 * 6 / 7.));
  EXPECT_EQ(stream.Below(1), 0u);
}

TEST(RandomStreamTest, DrawsTheResamplesOfThePage) {
  RandomStream stream(kResamplingSeed);
  std::vector<uint32_t> indices;
  for (int i = 0; i < 12; ++i) indices.push_back(stream.Below(6));
  ExpectRow("random-streams.md", "indices of the first two resamples of 6 differences",
            absl::StrJoin(indices, " "));
}

TEST(SignFlipTest, DrawsTheSignsOfThePage) {
  std::vector<double> differences;
  for (int i = 1; i <= 21; ++i) differences.push_back(i % 2 == 1 ? i : -i);
  const SignFlipResult result = SignFlipTest(differences);
  EXPECT_FALSE(result.exact);
  ExpectRow("random-streams.md", "`p_sign_flip` of the 21 differences 1, −2, 3, −4 … 21",
            absl::StrFormat("%.10f", result.p.value));
}

TEST(ComparePairsTest, EqualsTheOracle) {
  const std::vector<double> baseline = OracleR(83, 10, 2.4, .1);
  std::vector<double> setting = OracleR(81, 10, .03, .05);
  for (size_t i = 0; i < setting.size(); ++i) setting[i] += baseline[i];
  const PairedStatistics pairs = ComparePairs(setting, baseline);
  EXPECT_EQ(pairs.n, 10u);
  EXPECT_NEAR(pairs.mean.value, .02348341928, kTolerance);
  EXPECT_NEAR(pairs.deviation.value, .02766999982, kTolerance);
  EXPECT_NEAR(pairs.interval.low, .003689493818, kTolerance);
  EXPECT_NEAR(pairs.interval.high, .04327734474, kTolerance);
  EXPECT_NEAR(pairs.t.value, 2.683812528, kTolerance);
  EXPECT_NEAR(pairs.p_t.value, .02504912446, kTolerance);
  EXPECT_NEAR(pairs.p_sign_flip.value, 30 / 1024., 1e-15);
  EXPECT_TRUE(pairs.exact);
  EXPECT_NEAR(pairs.effect.value, .8486960401, kTolerance);
  EXPECT_NEAR(pairs.effect_unbiased.value, .7756020018, kTolerance);
  EXPECT_NEAR(pairs.correlation.value, .955762656, kTolerance);
  // Other draws than the oracle's: near its BCa interval, but not equal.
  EXPECT_NEAR(pairs.bca.low, .0091, .002);
  EXPECT_NEAR(pairs.bca.high, .0409, .002);
}

TEST(ComparePairsTest, SaysWhyANumberIsMissing) {
  const PairedStatistics none = ComparePairs({}, {});
  EXPECT_EQ(none.mean.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(none.p_sign_flip.undefined, Undefined::kTooFewPairs);
  const PairedStatistics one = ComparePairs({2}, {1.5});
  EXPECT_EQ(one.mean.value, .5);
  for (const Undefined reason : {one.deviation.undefined, one.interval.undefined, one.t.undefined,
                                 one.p_t.undefined, one.effect.undefined, one.p_sign_flip.undefined,
                                 one.bca.undefined, one.correlation.undefined}) {
    EXPECT_EQ(reason, Undefined::kTooFewPairs);
  }
  const PairedStatistics two = ComparePairs({2, 3}, {1.5, 2});
  EXPECT_TRUE(two.effect.defined());
  EXPECT_EQ(two.effect_unbiased.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(two.correlation.undefined, Undefined::kTooFewPairs);
  EXPECT_EQ(two.p_sign_flip.value, .5);
  const PairedStatistics huge = ComparePairs({1e308, 1e308}, {-1e308, -1e308});
  EXPECT_EQ(huge.mean.undefined, Undefined::kNonFinite);
  EXPECT_EQ(huge.p_sign_flip.undefined, Undefined::kNonFinite);
}

TEST(ComparePairsTest, TakesAConstantDifferenceForNoSpread) {
  // 2.3 + 0.1 - 2.3 is 0.1 up to the last bits of 2.3: without care t would be about 1e15.
  const std::vector<double> baseline = OracleR(5, 8, 2.4, .3);
  std::vector<double> setting = baseline;
  for (double& value : setting) value += .1;
  const PairedStatistics pairs = ComparePairs(setting, baseline);
  EXPECT_NEAR(pairs.mean.value, .1, kTolerance);
  EXPECT_EQ(pairs.deviation.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(pairs.t.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(pairs.interval.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(pairs.effect.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(pairs.bca.undefined, Undefined::kZeroVariance);
  EXPECT_EQ(pairs.p_sign_flip.value, 2 / 256.);
  EXPECT_NEAR(pairs.correlation.value, 1, kTolerance);
}

TEST(ComparePairsTest, TakesRoundingForTies) {
  const std::vector<double> setting = {.3, .1 + .2, .7, .5}, baseline = {.1 + .2, .3, .6, .6};
  ASSERT_NE(setting[0], baseline[0]);
  const PairedStatistics pairs = ComparePairs(setting, baseline, /*resamples=*/200);
  EXPECT_EQ(pairs.mean.value, 0) << "of 0, 0, .1 and -.1";
  EXPECT_EQ(pairs.p_sign_flip.value, 1);
  EXPECT_EQ(DifferenceOf(.3, .1 + .2), 0);
  EXPECT_NE(DifferenceOf(.3, .3 + 1e-11), 0);
}

TEST(MeanIntervalTest, EndsAtZeroWhereRoundingIsLeft) {
  const double quantile = StudentQuantile((1 + kConfidence) / 2, 9);
  int rounded = 0;
  for (int k = 1; k < 50; ++k) {
    const double mean = k / 300.0, deviation = mean * std::sqrt(10) / quantile;
    rounded += mean - quantile * deviation / std::sqrt(10) != 0;
    EXPECT_EQ(MeanInterval(Defined(mean), Defined(deviation), 10).low, 0);
    EXPECT_EQ(MeanInterval(Defined(-mean), Defined(deviation), 10).high, 0);
  }
  EXPECT_GT(rounded, 5);
}

TEST(ComparePairsTest, SwapsSignsWithItsSides) {
  for (const size_t n : {2, 3, 7, 20, 30}) {
    const std::vector<double> a = OracleR(n, n, 2, .1), b = OracleR(n + 100, n, 2.02, .1);
    const PairedStatistics ab = ComparePairs(a, b), ba = ComparePairs(b, a);
    EXPECT_EQ(ab.mean.value, -ba.mean.value);
    EXPECT_EQ(ab.interval.low, -ba.interval.high);
    EXPECT_EQ(ab.t.value, -ba.t.value);
    EXPECT_EQ(ab.p_t.value, ba.p_t.value);
    EXPECT_EQ(ab.p_sign_flip.value, ba.p_sign_flip.value);
    EXPECT_EQ(ab.effect.value, -ba.effect.value);
    EXPECT_EQ(ab.deviation.value, ba.deviation.value);
  }
}

}  // namespace
}  // namespace ablate::report
