// Tests comparisons by sequence: the same statistics as over seeds, on the sequences' values, and
// words that name them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/finding.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Values = std::vector<double>;

double MeanOf(const Values& values) { return Mean(values).value; }

// Returns settings of one run each, whose sequences have these values.
ComparisonInput BySequence(const std::vector<std::pair<std::string, Values>>& settings) {
  std::vector<std::pair<std::string, Values>> runs;
  for (const auto& [label, values] : settings) runs.push_back({label, {MeanOf(values)}});
  ComparisonInput input = OneAxis(runs);
  input.key = "predictions/loss";
  input.unit = Unit::kSequence;
  for (size_t i = 0; i < settings.size(); ++i) input.cells[i].by_sequence = settings[i].second;
  return input;
}

TEST(SequencesTest, HaveTheStatisticsOfPairs) {
  const Values pre = Base(40), post = Shifted(OracleR(7, 40, 2.4, .1), .01);
  const Comparison comparison = *Compare(BySequence({{"pre", pre}, {"post", post}}));
  const ComparisonRow& row = comparison.rows[1];
  const PairedStatistics expected = ComparePairs(post, pre);
  EXPECT_EQ(row.difference.n, 40u);
  EXPECT_EQ(row.difference.mean.value, expected.mean.value);
  EXPECT_EQ(row.difference.interval.low, expected.interval.low);
  EXPECT_EQ(row.difference.p_t.value, expected.p_t.value);
  EXPECT_EQ(row.difference.p_sign_flip.value, expected.p_sign_flip.value);
  EXPECT_EQ(row.difference.bca.high, expected.bca.high);
  EXPECT_EQ(row.p.value, expected.p_sign_flip.value);
  EXPECT_EQ(row.pairs.all, 40u);
  EXPECT_EQ(row.pairs.wins + row.pairs.losses, 40u);
  EXPECT_EQ(row.own.interval.low, Summarize(post).interval.low);
  // Runs stay runs: one per setting.
  EXPECT_EQ(row.n, 1u);
  ASSERT_THAT(row.runs, SizeIs(1));
  EXPECT_EQ(row.runs[0].value, MeanOf(post));
  EXPECT_EQ(comparison.planned, 2u);
  EXPECT_THAT(comparison.warnings, IsEmpty());
}

TEST(SequencesTest, GiveTheSameVerdictAsSeedsInOtherWords) {
  const Values pre = Base(12);
  const Comparison established =
      *Compare(BySequence({{"pre", pre}, {"post", Shifted(pre, .03, .01)}}));
  EXPECT_EQ(RowVerdict(established, 1).text,
            "“post” is worse than “pre” in predictions/loss: higher by 0.030 [0.023, 0.037], 1.3 % "
            "of “pre”; worse on 12 of 12 sequences; p < 0.001 (12 pairs allow no smaller p).");
  const Comparison open = *Compare(BySequence({{"pre", pre}, {"post", Shifted(pre, .003, .01)}}));
  EXPECT_EQ(RowVerdict(open, 1).text,
            "“post” is inconclusive against “pre” in predictions/loss: +0.003 [−0.004, +0.010]; "
            "worse on 6 of 12 sequences; p = 0.369; minimum detectable difference with 12 "
            "sequences: 0.00929 (80 % power); the observed difference needs about 98 sequences (21 "
            "to more than 10,000).");
  EXPECT_EQ(FindingOf(open, 1).brief.back(), "about 98 sequences needed");
  const Comparison few = *Compare(BySequence({{"pre", {2, 3}}, {"post", {3, 5}}}));
  EXPECT_EQ(RowVerdict(few, 1).text,
            "“post” has too few pairs for a verdict against “pre” in predictions/loss: +2 [−5, +8] "
            "over 2 sequences; the permutation test needs at least 6 sequences.");
  const Comparison same = *Compare(BySequence({{"pre", pre}, {"post", pre}}));
  EXPECT_THAT(RowVerdict(same, 1).text,
              HasSubstr("identical values over 12 sequences; more sequences will not help"));
  const Comparison constant = *Compare(BySequence({{"pre", pre}, {"post", Shifted(pre, .1)}}));
  EXPECT_THAT(RowVerdict(constant, 1).text, HasSubstr("on every sequence (no spread"));
}

TEST(SequencesTest, SayWhatTheIntervalIsAbout) {
  ComparisonInput input = BySequence({{"pre", Base(12)}, {"post", Base(12)}});
  EXPECT_THAT(UnitNote(*Compare(input)), HasSubstr("intervals and p are about other sequences"));
  input.exploratory = "report.primary is eval/loss";
  EXPECT_THAT(UnitNote(*Compare(input)), HasSubstr("intervals are about other sequences"));
  EXPECT_EQ(UnitNote(*Compare(OneAxis({{"pre", Base(3)}, {"post", Base(3)}}))), "");
}

TEST(SequencesTest, OfARunThatDivergedHaveNoPairs) {
  ComparisonInput input = BySequence({{"pre", Base(12)}, {"post", Base(12)}});
  input.cells[1].outcome = RunOutcome::kDiverged;
  input.cells[1].value.reset();
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.rows[1].diverged, 1u);
  EXPECT_EQ(comparison.rows[1].own.mean.undefined, Undefined::kAllDiverged);
  EXPECT_EQ(comparison.rows[1].pairs.all, 0u);
  const Verdict verdict = RowVerdict(comparison, 1);
  EXPECT_EQ(verdict.text,
            "“post” has too few pairs for a verdict against “pre” in predictions/loss: “post” "
            "diverged.");
  EXPECT_EQ(verdict.seeds.seeds, 0u) << "more sequences decide nothing";
  EXPECT_THAT(comparison.warnings, IsEmpty()) << "too few pairs is no fault that more would mend";
  EXPECT_EQ(UnitNote(comparison), "") << "there is no interval";
}

TEST(SequencesTest, AreComparedForEachEvaluationData) {
  ComparisonInput input;
  input.key = "predictions/loss";
  input.unit = Unit::kSequence;
  input.axes = {MakeAxis("text", {"a", "b"}), MakeAxis("norm", {"pre", "post"})};
  for (const char* text : {"a", "b"}) {
    const Values pre = Base(12);
    for (const char* norm : {"pre", "post"}) {
      const Values values = norm[1] == 'o' ? Shifted(pre, .03, .01) : pre;
      Cell& cell = input.cells.emplace_back(MakeCell({text, norm}, 1, MeanOf(values)));
      cell.by_sequence = values;
      cell.scored["data"] = text;
      cell.sequences = text;
    }
  }
  const Comparison comparison = *Compare(input);
  EXPECT_EQ(comparison.rows[1].difference.n, 12u);
  EXPECT_EQ(comparison.rows[3].difference.n, 12u);
  EXPECT_EQ(comparison.family, 2u);
}

TEST(SequencesTest, AreNotPairedWithOthersOfTheSameNumber) {
  ComparisonInput input = BySequence({{"pre", Base(12)}, {"post", Shifted(Base(12), .03, .01)}});
  input.cells[1].sequences = "others";
  EXPECT_EQ(Compare(input)->rows[1].pairs.all, 0u);
  input.cells[0].sequences = "others";
  input.cells[1].seed = input.cells[0].seed + 1;
  EXPECT_EQ(Compare(input)->rows[1].pairs.all, 12u) << "windows of a text don't depend on seeds";
}

// The loss is Σ sums / Σ targets, and its variance that of the residuals sums − loss · targets.
TEST(SequencesTest, CountTheLengthOfASequenceForNoSpread) {
  Values weights, pre, post;
  for (const double draw : OracleR(3, 50, 0, 1)) weights.push_back(1 + .9 * draw);
  const double scale = MeanOf(weights);
  for (double& weight : weights) weight /= scale;
  const Values rates = OracleR(5, 50, 2, .2), more = OracleR(6, 50, .1, .05);
  for (size_t i = 0; i < 50; ++i) {
    pre.push_back(weights[i] * rates[i]);
    post.push_back(weights[i] * (rates[i] + more[i]));
  }
  ComparisonInput input = BySequence({{"pre", pre}, {"post", post}});
  for (Cell& cell : input.cells) cell.sequence_weights = weights;
  const ComparisonRow row = Compare(input)->rows[1];
  Values own, differences;
  for (size_t i = 0; i < 50; ++i) {
    own.push_back(post[i] - MeanOf(post) * weights[i]);
    differences.push_back(own[i] - (pre[i] - MeanOf(pre) * weights[i]));
  }
  const double deviation = StandardDeviation(differences).value;
  EXPECT_NEAR(row.own.deviation.value, StandardDeviation(own).value, 1e-12);
  EXPECT_NEAR(row.difference.deviation.value, deviation, 1e-12);
  EXPECT_NEAR(row.difference.mean.value, MeanOf(post) - MeanOf(pre), 1e-12);
  EXPECT_NEAR(row.difference.t.value, row.difference.mean.value / deviation * std::sqrt(50), 1e-9);
  EXPECT_EQ(row.difference.p_sign_flip.value, ComparePairs(post, pre).p_sign_flip.value);
  EXPECT_EQ(row.pairs.wins + row.pairs.losses, 50u);
}

TEST(SequencesTest, HaveEffectsOfCrossedAxes) {
  ComparisonInput input = NormByResidual([](bool post, bool plain) {
    return Values{MeanOf(Shifted(Base(30), (post ? .1 : 0) + (plain ? .2 : 0), post ? .01 : 0))};
  });
  input.unit = Unit::kSequence;
  for (Cell& cell : input.cells) {
    const bool post = cell.labels[0] == "post", plain = cell.labels[1] == "false";
    cell.by_sequence = Shifted(Base(30), (post ? .1 : 0) + (plain ? .2 : 0), post ? .01 : 0);
  }
  const Comparison comparison = *Compare(input);
  ASSERT_THAT(comparison.factorial.main, SizeIs(2));
  const Effect& norm = comparison.factorial.main[0];
  EXPECT_EQ(norm.difference.n, 30u);
  EXPECT_NEAR(norm.difference.mean.value, .1, 1e-12);
  EXPECT_THAT(EffectFinding(comparison, norm, 2).evidence, HasSubstr("30 sequences"));
}

TEST(SequencesTest, AreRefusedIfTheyAreNotOneRunOfEachSetting) {
  const auto error = [](const ComparisonInput& input) {
    return std::string(Compare(input).status().message());
  };
  const ComparisonInput good = BySequence({{"pre", Base(12)}, {"post", Base(12)}});
  ComparisonInput two = good;
  two.cells.push_back(two.cells[0]);
  two.cells.back().seed = 9;
  EXPECT_THAT(error(two), HasSubstr("2 cells of a setting"));
  ComparisonInput uneven = good;
  uneven.cells[1].by_sequence.pop_back();
  EXPECT_THAT(error(uneven), HasSubstr("cells.by_sequence: 11 values"));
  ComparisonInput infinite = good;
  infinite.cells[1].by_sequence[3] = kDivergedRun;
  EXPECT_THAT(error(infinite), HasSubstr("not finite"));
  ComparisonInput ratio = good;
  ratio.scale = Scale::kRatio;
  EXPECT_THAT(error(ratio), HasSubstr("expected seeds"));
}

TEST(SequencesTest, WarnIfTheyCannotBePaired) {
  ComparisonInput input = OneAxis({{"pre", {2}}, {"post", {3}}});
  input.not_by_sequence = "the analysis of post-s1 has no array by_sequence/loss";
  const Comparison comparison = *Compare(input);
  std::vector<std::string> texts;
  for (const Warning& warning : comparison.warnings) texts.push_back(warning.text);
  EXPECT_THAT(texts, testing::Contains("compared by seed, not by sequence: the analysis of post-s1 "
                                       "has no array by_sequence/loss"));
  EXPECT_THAT(RowVerdict(comparison, 1).text, Not(HasSubstr("sequence")));
}

TEST(SequencesTest, MayBeThousands) {
  const Values pre = OracleR(11, 1000, 2.4, .5);
  const Comparison comparison =
      *Compare(BySequence({{"pre", pre}, {"post", Shifted(pre, .01, .05)}}));
  EXPECT_THAT(RowVerdict(comparison, 1).text, HasSubstr("of 1,000 sequences"));
}

}  // namespace
}  // namespace ablate::report
