// Tests main effects and interactions of crossed axes, against sums written out by hand.
#include "server/report/compare/factorial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kSeeds = 8;
constexpr double kClose = 1e-12;

// norm × residual: a seed's own value, 0.03 more for post, 0.1 more without the residual, and
// `together` more with both; a hundredth of noise by cell and seed.
double ValueOf(bool post, bool plain, size_t seed, double together) {
  const double noise =
      .01 * static_cast<double>((seed * 7 + (post ? 3 : 0) + (plain ? 5 : 0)) % 11);
  return 2 + .1 * static_cast<double>(seed) + (post ? .03 : 0) + (plain ? .1 : 0) +
         (post && plain ? together : 0) + noise;
}

ComparisonInput TwoByTwo(double together) {
  return NormByResidual([together](bool post, bool plain) {
    std::vector<double> values;
    for (size_t seed = 0; seed < kSeeds; ++seed) {
      values.push_back(ValueOf(post, plain, seed, together));
    }
    return values;
  });
}

std::vector<std::string> NamesOf(const std::vector<Effect>& effects) {
  std::vector<std::string> names;
  for (const Effect& effect : effects) names.push_back(EffectName(effect));
  return names;
}

TEST(FactorialTest, IsMeansAndContrastsOfTheSeedsCells) {
  const Comparison comparison = *Compare(TwoByTwo(.05));
  const Factorial& found = comparison.factorial;
  ASSERT_THAT(NamesOf(found.main), ElementsAre("post", "residual false"));
  ASSERT_THAT(NamesOf(found.interactions), ElementsAre("post × residual false"));
  double post = 0, plain = 0, both = 0;
  for (size_t seed = 0; seed < kSeeds; ++seed) {
    const auto at = [seed](bool a, bool b) { return ValueOf(a, b, seed, .05); };
    post += (at(true, false) + at(true, true) - at(false, false) - at(false, true)) / 2;
    plain += (at(false, true) + at(true, true) - at(false, false) - at(true, false)) / 2;
    both += at(true, true) - at(false, true) - at(true, false) + at(false, false);
  }
  EXPECT_THAT(found.main[0].difference.mean.value, DoubleNear(post / kSeeds, kClose));
  EXPECT_THAT(found.main[1].difference.mean.value, DoubleNear(plain / kSeeds, kClose));
  EXPECT_THAT(found.interactions[0].difference.mean.value, DoubleNear(both / kSeeds, kClose));
  EXPECT_EQ(found.main[0].combinations, 2u);
  EXPECT_EQ(found.interactions[0].combinations, 1u);
  EXPECT_EQ(found.main[0].levels[0].baseline, "pre");
}

TEST(FactorialTest, EachKindIsAFamilyOfItsOwn) {
  const Factorial found = (*Compare(TwoByTwo(.05))).factorial;
  const double least = 2.0 / (1 << kSeeds);
  EXPECT_EQ(found.main[1].difference.p_sign_flip.value, least);
  EXPECT_EQ(found.main[1].p_holm.value, 2 * least) << "of two main effects";
  EXPECT_EQ(found.interactions[0].p_holm.value, found.interactions[0].difference.p_sign_flip.value)
      << "the only interaction";
}

TEST(FactorialTest, LeavesOutSeedsOnWhichSomeRunDiverged) {
  ComparisonInput input = TwoByTwo(.05);
  input.cells[0].outcome = RunOutcome::kDiverged;  // pre, true, seed 0
  input.cells[0].value.reset();
  const Factorial found = (*Compare(input)).factorial;
  EXPECT_EQ(found.main[0].difference.n, kSeeds - 1);
  EXPECT_EQ(found.interactions[0].difference.n, kSeeds - 1);
}

TEST(FactorialTest, TakesCombinationsThatAreCompleteOnly) {
  ComparisonInput input = TwoByTwo(.05);
  // A third norm that isn't crossed with the residual.
  input.axes[0].labels.emplace_back("none");
  for (size_t seed = 0; seed < kSeeds; ++seed) {
    input.cells.push_back(MakeCell({"none", "true"}, static_cast<uint32_t>(seed),
                                   ValueOf(false, false, seed, 0) + .2));
  }
  const Factorial found = (*Compare(input)).factorial;
  ASSERT_THAT(NamesOf(found.main), ElementsAre("post", "none", "residual false"));
  EXPECT_EQ(found.main[1].combinations, 1u);
  EXPECT_THAT(found.main[1].difference.mean.value, DoubleNear(.2, kClose));
  EXPECT_THAT(NamesOf(found.interactions), ElementsAre("post × residual false"))
      << "none is never crossed";
  for (Cell& cell : input.cells) {
    if (cell.labels[0] != "post" || cell.labels[1] != "false") continue;
    cell.outcome = RunOutcome::kDiverged;
  }
  const Factorial diverged = (*Compare(input)).factorial;
  ASSERT_THAT(NamesOf(diverged.interactions), ElementsAre("post × residual false"));
  EXPECT_EQ(diverged.interactions[0].combinations, 0u);
  EXPECT_FALSE(diverged.interactions[0].difference.mean.defined());
}

TEST(FactorialTest, AveragesInteractionsOverFurtherAxes) {
  ComparisonInput input = TwoByTwo(.05);
  input.axes.push_back(MakeAxis("width", {"16", "32"}));
  for (Cell& cell : input.cells) cell.labels.emplace_back("16");
  const size_t narrow = input.cells.size();
  for (size_t i = 0; i < narrow; ++i) {
    Cell wide = input.cells[i];
    wide.labels[2] = "32";
    *wide.value -= .5;
    input.cells.push_back(wide);
  }
  const Factorial found = (*Compare(input)).factorial;
  EXPECT_THAT(NamesOf(found.main), ElementsAre("post", "residual false", "width 32"));
  EXPECT_THAT(NamesOf(found.interactions),
              ElementsAre("post × residual false", "post × width 32", "residual false × width 32"));
  EXPECT_EQ(found.interactions[0].combinations, 2u);
  EXPECT_THAT(found.main[2].difference.mean.value, DoubleNear(-.5, kClose));
  EXPECT_THAT(found.interactions[1].difference.mean.value, DoubleNear(0, kClose));
}

TEST(FactorialTest, TestsNothingThatWasTuned) {
  ComparisonInput input = TwoByTwo(.05);
  input.axes.push_back(MakeAxis("lr", {"0.01"}, true, {.01}));
  for (Cell& cell : input.cells) cell.labels.emplace_back("0.01");
  const Factorial found = (*Compare(input)).factorial;
  ASSERT_EQ(found.main.size(), 2u);
  EXPECT_TRUE(found.main[0].difference.interval.defined());
  EXPECT_FALSE(found.main[0].difference.p_sign_flip.defined());
  EXPECT_FALSE(found.main[0].p_holm.defined());
}

TEST(FactorialTest, CrossesSettingsThatAreTunedOverOtherValues) {
  ComparisonInput input = OptimizersGrid();
  input.axes.push_back(MakeAxis("norm", {"pre", "post"}));
  for (Cell& cell : input.cells) cell.labels.emplace_back("pre");
  const size_t pre = input.cells.size();
  for (size_t i = 0; i < pre; ++i) {
    Cell post = input.cells[i];
    post.labels[2] = "post";
    *post.value += post.labels[0] == "sgd" ? .08 : .05;
    input.cells.push_back(post);
  }
  const Factorial found = (*Compare(input)).factorial;
  ASSERT_THAT(NamesOf(found.main), ElementsAre("sgd", "lion", "post"));
  EXPECT_THAT(found.main[0].difference.mean.value, DoubleNear(.415, kClose));
  EXPECT_THAT(found.main[1].difference.mean.value, DoubleNear(.2, kClose));
  EXPECT_THAT(found.main[2].difference.mean.value, DoubleNear(.06, kClose));
  ASSERT_THAT(NamesOf(found.interactions), ElementsAre("sgd × post", "lion × post"));
  EXPECT_THAT(found.interactions[0].difference.mean.value, DoubleNear(.03, kClose));
  EXPECT_THAT(found.interactions[1].difference.mean.value, DoubleNear(0, kClose));
}

TEST(FactorialTest, IsNoneWhereRowsHaveNoVerdict) {
  ComparisonInput unfinished = TwoByTwo(.05);
  Unfinish(&unfinished.cells.back());
  EXPECT_THAT((*Compare(unfinished)).factorial.main, IsEmpty());
  ComparisonInput exploratory = TwoByTwo(.05);
  exploratory.exploratory = "report.primary is train/loss";
  EXPECT_THAT((*Compare(exploratory)).factorial.main, IsEmpty());
  ComparisonInput by = TwoByTwo(.05);
  by.by = "norm";
  EXPECT_THAT((*Compare(by)).factorial.main, IsEmpty()) << "two baselines";
  EXPECT_THAT((*Compare(OneAxis({{"pre", Base(8)}, {"post", Base(8)}}))).factorial.main, IsEmpty())
      << "one axis";
}

}  // namespace
}  // namespace ablate::report
