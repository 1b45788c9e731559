// Tests comparisons of ratios: the statistics of logarithms, means in the metric's unit, and their
// words.
#include "server/report/compare/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/report/compare/column_digits.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/finding.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kExact = 1e-12;

// Norms over three decades by seed; the others are about `factor` times as large.
std::vector<double> Norms(size_t n, double factor, double spread = 0) {
  std::vector<double> norms = OracleR(17, n, 0, 1);
  const std::vector<double> noise = OracleR(static_cast<uint64_t>(100 * factor), n, 0, spread);
  for (size_t i = 0; i < n; ++i) norms[i] = factor * std::exp(2 * norms[i] + noise[i]);
  return norms;
}

ComparisonInput NormGrid(size_t n = 8) {
  ComparisonInput input = OneAxis({{"pre", Norms(n, 1)},
                                   {"post", Norms(n, 1.4, .02)},
                                   {"none", Norms(n, .5, .02)},
                                   {"like", Norms(n, 1.01, .1)}});
  input.key = "train/gradient_norm";
  input.better = Better::kNeither;
  input.scale = Scale::kRatio;
  return input;
}

// Returns the same grid with logarithms as values, compared by differences.
ComparisonInput Logarithms(ComparisonInput input) {
  for (Cell& cell : input.cells) {
    if (cell.value.has_value()) cell.value = std::log(*cell.value);
  }
  input.scale = Scale::kDifference;
  if (input.margin.has_value()) input.margin = std::log1p(*input.margin);
  return input;
}

void ExpectAlike(const PairedStatistics& a, const PairedStatistics& b) {
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.mean.value, b.mean.value);
  EXPECT_EQ(a.deviation.value, b.deviation.value);
  EXPECT_EQ(a.interval.low, b.interval.low);
  EXPECT_EQ(a.interval.high, b.interval.high);
  EXPECT_EQ(a.by_reselection, b.by_reselection);
  EXPECT_EQ(a.p_t.value, b.p_t.value);
  EXPECT_EQ(a.p_sign_flip.value, b.p_sign_flip.value);
  EXPECT_EQ(a.effect.value, b.effect.value);
  EXPECT_EQ(a.correlation.value, b.correlation.value);
}

TEST(RatioTest, HasTheStatisticsOfLogarithms) {
  ComparisonInput input = NormGrid();
  input.margin = .2;
  const Comparison ratios = *Compare(input), logarithms = *Compare(Logarithms(input));
  EXPECT_EQ(ratios.scale, Scale::kRatio);
  for (const Warning& warning : ratios.warnings) {
    EXPECT_NE(warning.kind, WarningKind::kNotPositive) << warning.text;
  }
  for (size_t row = 1; row < 4; ++row) {
    const ComparisonRow &own = ratios.rows[row], &other = logarithms.rows[row];
    ExpectAlike(own.difference, other.difference);
    EXPECT_EQ(own.difference.bca.low, other.difference.bca.low);
    EXPECT_EQ(own.p_holm.value, other.p_holm.value);
    EXPECT_EQ(own.p_equivalence.value, other.p_equivalence.value);
    EXPECT_EQ(own.pairs.wins, other.pairs.wins);
    EXPECT_EQ(own.needed.estimate.value, other.needed.estimate.value);
    EXPECT_EQ(own.least_detectable.value, other.least_detectable.value);
    EXPECT_EQ(Decide(ratios, own).grade, Decide(logarithms, other).grade);
  }
  EXPECT_EQ(ratios.margin, .2) << "as the spec says it";
}

TEST(RatioTest, MeansAreGeometricInTheMetricsUnit) {
  ComparisonInput input = OneAxis({{"pre", {1, 100}}, {"post", {2, 800}}});
  input.scale = Scale::kRatio;
  const Comparison comparison = *Compare(input);
  const ComparisonRow& post = comparison.rows[1];
  EXPECT_THAT(comparison.rows[0].mean.value, DoubleNear(10, kExact));
  EXPECT_THAT(post.own.mean.value, DoubleNear(40, 1e-11));
  EXPECT_THAT(post.mean.value, DoubleNear(40, 1e-11));
  // ln 40 ± t(0.975, 1) times half the distance of the two logarithms.
  const double half = 12.706204736432095 * std::log(400) / 2;
  EXPECT_NEAR(std::log(post.interval.low), std::log(40) - half, 1e-9);
  EXPECT_NEAR(std::log(post.interval.high), std::log(40) + half, 1e-9);
  EXPECT_THAT(post.difference.mean.value, DoubleNear(std::log(4), kExact));
  EXPECT_EQ(post.runs[1].value, 800) << "a run's value stays what it is";
}

TEST(RatioTest, EqualRatiosAreAConstantAndEqualValuesIdentical) {
  ComparisonInput input = OneAxis({{"pre", Norms(6, 1)}, {"post", Norms(6, 2)}});
  input.scale = Scale::kRatio;
  const Comparison twice = *Compare(input);
  EXPECT_EQ(Decide(twice, twice.rows[1]).ground, Ground::kConstant);
  EXPECT_EQ(FindingOf(twice, 1).lead, "Higher by a factor of 2.00");
  input = OneAxis({{"pre", Norms(6, 1)}, {"post", Norms(6, 1)}});
  input.scale = Scale::kRatio;
  const Comparison same = *Compare(input);
  EXPECT_EQ(Decide(same, same.rows[1]).ground, Ground::kIdentical);
}

TEST(RatioTest, FallsBackToDifferencesWhereAValueIsNotPositive) {
  ComparisonInput input = NormGrid();
  input.margin = .1;
  input.cells[9].value = 0;
  input.cells[20].value = -1;
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.scale, Scale::kDifference);
  EXPECT_EQ(comparison.margin, std::nullopt);
  EXPECT_EQ(comparison.rows[1].p_equivalence.undefined, Undefined::kNotRecorded);
  std::vector<std::string> texts;
  for (const Warning& warning : comparison.warnings) {
    if (warning.kind == WarningKind::kNotPositive) texts.push_back(warning.text);
  }
  EXPECT_THAT(
      texts,
      ElementsAre("compared as differences instead of ratios, and without the margin, because runs "
                  "ended with a gradient norm of 0 or less: “post” 1 and “none” 1"));
  input.scale = Scale::kDifference;
  input.margin.reset();
  const Comparison differences = *Compare(input);
  for (size_t row = 1; row < 4; ++row) {
    ExpectAlike(comparison.rows[row].difference, differences.rows[row].difference);
  }
  EXPECT_THAT(differences.warnings, IsEmpty());
}

TEST(RatioTest, ADivergedRunKeepsNothingFromBeingPositive) {
  ComparisonInput input = NormGrid();
  input.cells[9] = MakeCell({"post"}, 1, kDivergedRun);
  input.cells[10].value = std::numeric_limits<double>::infinity();
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.scale, Scale::kRatio);
  EXPECT_EQ(comparison.rows[1].diverged, 2u);
}

// The base's norms, and at the second rate others, one of which is so large that their arithmetic
// mean is larger and their geometric mean smaller.
ComparisonInput TunedNorms() {
  ComparisonInput input;
  input.key = "eval/norm";
  input.scale = Scale::kRatio;
  input.axes = {MakeAxis("norm", {"pre", "post"}), MakeAxis("lr", {"0.1", "0.2"}, true, {.1, .2})};
  for (const std::string setting : {"pre", "post"}) {
    const double factor = setting == "pre" ? 1 : 1.5;
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const double noise = std::exp(.05 * std::sin(7 * seed + factor));
      input.cells.push_back(MakeCell({setting, "0.1"}, seed, 2 * factor * noise));
      input.cells.push_back(
          MakeCell({setting, "0.2"}, seed, (seed < 4 ? 10 : .1) * factor * noise));
    }
  }
  return input;
}

TEST(RatioTest, ChoosesAsDifferencesDo) {
  const ComparisonInput input = TunedNorms();
  ComparisonInput plain = input;
  plain.scale = Scale::kDifference;
  const Comparison ratios = *Compare(input), differences = *Compare(plain);
  for (size_t row = 0; row < 2; ++row) {
    ASSERT_EQ(ratios.rows[row].chosen.size(), 1u);
    EXPECT_THAT(ratios.rows[row].chosen[0].labels, ElementsAre("0.1"));
    EXPECT_EQ(differences.rows[row].chosen[0].labels, ratios.rows[row].chosen[0].labels);
  }
  // Nothing else can be selected under any pattern: the test is that of the logarithms at 0.1.
  EXPECT_TRUE(ratios.rows[1].difference.by_reselection);
  ComparisonInput chosen = OneAxis({{"pre", {}}, {"post", {}}});
  for (const Cell& cell : input.cells) {
    if (cell.labels[1] == "0.1")
      chosen.cells.push_back(MakeCell({cell.labels[0]}, cell.seed, *cell.value));
  }
  chosen.scale = Scale::kRatio;
  const Comparison untuned = *Compare(chosen);
  EXPECT_EQ(ratios.rows[1].difference.mean.value, untuned.rows[1].difference.mean.value);
  EXPECT_EQ(ratios.rows[1].difference.p_sign_flip.value,
            untuned.rows[1].difference.p_sign_flip.value);
  EXPECT_THAT(MatchedNote(ratios), HasSubstr("All at lr 0.1: “post” higher by a factor of 1."));
}

TEST(RatioTest, EffectsOfCrossedAxesAreRatiosOfRatios) {
  ComparisonInput input = NormByResidual([](bool post, bool plain) {
    return Norms(8, (post ? 2. : 1) * (plain ? 10 : 1) * (post && plain ? 3 : 1), .01);
  });
  input.key = "train/gradient_norm";
  input.scale = Scale::kRatio;
  const Comparison comparison = *Compare(input);
  const Factorial& found = comparison.factorial;
  ASSERT_EQ(found.main.size(), 2u);
  ASSERT_EQ(found.interactions.size(), 1u);
  // 2 with the residual and 6 without it.
  EXPECT_NEAR(std::exp(found.main[0].difference.mean.value), std::sqrt(12), .05);
  EXPECT_NEAR(std::exp(found.interactions[0].difference.mean.value), 3, .05);
  const Comparison logarithms = *Compare(Logarithms(input));
  ExpectAlike(found.interactions[0].difference, logarithms.factorial.interactions[0].difference);
}

TEST(RatioWordsTest, SayHowManyTimesAndWhichWay) {
  const Comparison comparison = *Compare(NormGrid());
  EXPECT_THAT(
      RowVerdict(comparison, 1).text,
      AllOf(HasSubstr("“post” is higher than “pre” in gradient norm: higher by a factor of 1."),
            HasSubstr("]; over 8 seeds; p = 0.023 (Holm-adjusted for 3 comparisons; 8 pairs"),
            Not(HasSubstr("+")), Not(HasSubstr("%"))));
  EXPECT_THAT(RowVerdict(comparison, 2).text,
              HasSubstr("“none” is lower than “pre” in gradient norm: lower by a factor of "));
  EXPECT_THAT(RowVerdict(comparison, 3).text,
              AllOf(HasSubstr("in gradient norm: ×"),
                    HasSubstr("minimum detectable ratio with 8 seeds: a factor of 1.")));
  const Finding lower = FindingOf(comparison, 2);
  EXPECT_THAT(lower.lead, HasSubstr("Lower by a factor of "));
  EXPECT_THAT(lower.evidence, EndsWith("]; over 8 seeds")) << "no share, for it is one";
  EXPECT_EQ(MeasuredIn(comparison),
            "Gradient norm (compared as ratios, neither direction is better)");
  EXPECT_EQ(MeanDecimals(comparison), -1) << "of its own each";
}

TEST(RatioWordsTest, AMarginIsAFactorEitherWay) {
  ComparisonInput input = NormGrid();
  input.margin = .5;
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(RowVerdict(comparison, 3).text,
              AllOf(HasSubstr("“like” is equivalent to “pre”"),
                    HasSubstr("within a factor of 1.5 either way (equivalence test: p")));
}

Interval Between(double low, double high) { return DefinedInterval(std::log(low), std::log(high)); }

Number Times(double ratio) { return Defined(std::log(ratio)); }

TEST(RatioWordsTest, HaveTheDigitsThatTheIntervalDeserves) {
  const auto shown = [](double ratio, double low, double high) {
    return ShownDifference(Scale::kRatio, Times(ratio), Between(low, high)).text();
  };
  EXPECT_EQ(shown(1.42, 1.31, 1.55), "×1.42 [1.31, 1.55]");
  EXPECT_EQ(shown(1.0023, 1.0011, 1.0035), "×1.0023 [1.0011, 1.0035]");
  EXPECT_EQ(shown(37.2, 30.1, 46), "×37 [30, 46]");
  EXPECT_EQ(shown(.0123, .0101, .015), "×0.0123 [0.0101, 0.0150]");
  EXPECT_EQ(shown(.012, .0005, .288), "×0.012 [0.00050, 0.29]") << "far apart";
  EXPECT_EQ(shown(2, 2 - 1e-15, 2 + 1e-15), "×2.0 [2.0, 2.0]") << "nothing but rounding";
  EXPECT_EQ(ShownDifference(Scale::kRatio, Times(1.4), NoInterval(Undefined::kZeroVariance)).text(),
            "×1.40");
  EXPECT_EQ(
      ShownDifference(Scale::kRatio, Defined(800), NoInterval(Undefined::kTooFewPairs)).text(),
      "undefined (NON_FINITE)");
}

TEST(RatioWordsTest, AGeometricMeanHasDigitsOfItsOwn) {
  EXPECT_EQ(ShownMean(Scale::kRatio, .6123, DefinedInterval(.0801, 4.68), 5).text(),
            "0.61 [0.080, 4.7]");
  EXPECT_EQ(ShownMean(Scale::kRatio, 612.3, DefinedInterval(580.1, 646.3), 5).text(),
            "612 [580, 646]");
  EXPECT_EQ(ShownMean(Scale::kDifference, .6123, DefinedInterval(.0801, 4.68), 1).text(),
            "0.6 [0.1, 4.7]");
}

TEST(RatioWordsTest, AreAlwaysAbove1WithTheDirection) {
  const auto directed = [](double ratio, double low, double high) {
    return DirectedDifference(Scale::kRatio, Times(ratio), Between(low, high)).text();
  };
  EXPECT_EQ(directed(1.42, 1.31, 1.55), "higher by a factor of 1.42 [1.31, 1.55]");
  EXPECT_EQ(directed(1 / 2.1, 1 / 2.4, 1 / 1.8), "lower by a factor of 2.10 [1.80, 2.40]");
  EXPECT_EQ(directed(1.02, .97, 1.07), "×1.02 [0.97, 1.07]");
  EXPECT_EQ(DirectedSize(Scale::kRatio, std::log(.5), NoInterval(Undefined::kZeroVariance)),
            "lower by a factor of 2.00");
  EXPECT_EQ(DirectedSize(Scale::kDifference, -.031, DefinedInterval(-.038, -.024)),
            "lower by 0.031");
}

TEST(RatioWordsTest, TellAFactorFrom1) {
  EXPECT_EQ(ShownFactor(1.083), "1.08");
  EXPECT_EQ(ShownFactor(1.00341), "1.0034");
  EXPECT_EQ(ShownFactor(2.26), "2.3");
  EXPECT_EQ(ShownFactor(37.2), "37");
}

TEST(ScaleOfMetricTest, IsKnownByTheKey) {
  for (const char* key :
       {"train/gradient_norm", "gradient/embedding", "parameter_gradient/block.3",
        "alignment_ratio/block.0", "flow/gradient/block.3", "flow/gradient_ratio/embedding",
        "flow/parameter_gradient", "flow/relative_gradient/block.1.attention", "alike/norm_ratio",
        "sharp/gradient_norm", "weights/l2_norm/block.0.ffn", "words/perplexity",
        "words/replace_words@0.2/perplexity", "words/embedding_rms"}) {
    EXPECT_EQ(ScaleOfMetric(key, MetricSource::kTrainer), Scale::kRatio) << key;
  }
  for (const char* key :
       {"eval/loss", "train/loss", "eval/accuracy", "alignment/block.0", "alike/cosine",
        "jacobian/r_mean", "ranks/stable_rank", "gradient", "sharp/largest_eigenvalue",
        "remove/loss", "sharp/loss", "words/fgsm@0.1/loss", "words/fgsm@0.1", ""}) {
    EXPECT_EQ(ScaleOfMetric(key, MetricSource::kTrainer), Scale::kDifference) << key;
  }
  EXPECT_EQ(NameOfFamily("w/l2_norm", MetricSource::kTrainer).text, "w/l2_norm")
      << "it has no other name";
}

}  // namespace
}  // namespace ablate::report
