// Comparisons with tuned axes: what was chosen, and the matched values beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/report/comparison.h"
#include "tests/report/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr double kTolerance = 1e-9;

TEST(CompareTest, TunedDifferenceEqualsTheOracle) {
  const Comparison comparison = *Compare(OracleGrid());
  ASSERT_THAT(comparison.rows, SizeIs(2));
  EXPECT_TRUE(comparison.rows[0].is_baseline);
  const ComparisonRow& row = comparison.rows[1];
  EXPECT_NEAR(row.difference.mean.value, .2933202261, kTolerance);
  EXPECT_NEAR(row.difference.deviation.value, 1.039642623, kTolerance);
  ASSERT_THAT(row.chosen, SizeIs(2));
  EXPECT_THAT(row.chosen[0].labels, ElementsAre("0.1"));
  EXPECT_EQ(row.chosen[0].seeds, 3u);
  EXPECT_THAT(row.chosen[1].labels, ElementsAre("0.4"));
  EXPECT_EQ(row.chosen[1].seeds, 3u);
  EXPECT_THAT(row.runs[2].chosen, ElementsAre("0.4"));
}

TEST(CompareTest, MatchedDifferenceEqualsTheOracle) {
  const Comparison comparison = *Compare(OracleGrid());
  ASSERT_THAT(comparison.matched, SizeIs(3));
  EXPECT_THAT(comparison.matched[0].labels, ElementsAre("0.1"));
  EXPECT_NEAR(comparison.matched[0].rows[1].difference.mean.value, -.2702565478, kTolerance);
  EXPECT_EQ(comparison.matched[0].rows[1].baseline, 0u);
  EXPECT_EQ(comparison.matched[2].rows[0].own.n, 6u);
}

TEST(CompareTest, MatchedRowsShareOneHolmFamily) {
  const Comparison comparison = *Compare(OracleGrid());
  std::vector<Number> p;
  for (const MatchedBlock& block : comparison.matched) {
    p.push_back(block.rows[1].difference.p_sign_flip);
  }
  const std::vector<Number> adjusted = HolmAdjust(p);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(comparison.matched[i].rows[1].p_holm.value, adjusted[i].value);
  }
}

TEST(CompareTest, ReferenceIsTheBaseSpecsOwnValueElseTheBaselinesUsualOne) {
  ComparisonInput input = OracleGrid();
  EXPECT_EQ(Compare(input)->reference, 1u);  // layer chose 0.2 on five of six seeds
  input.axes[1].base = "0.4";
  EXPECT_EQ(Compare(input)->reference, 2u);
  EXPECT_EQ(Compare(OneAxis({{"a", {1, 2}}}))->reference, std::nullopt);
}

TEST(CompareTest, TunesSeveralAxesJointly) {
  ComparisonInput input;
  input.axes = {MakeAxis("norm", {"layer", "rms"}), MakeAxis("lr", {"0.1", "0.2"}, true),
                MakeAxis("decay", {"0", "1"}, true)};
  // Each axis alone would leave layer at the first value; only both together are best.
  const double losses[2][2] = {{2, 3}, {3, 1}};
  for (const size_t lr : {0, 1}) {
    for (const size_t decay : {0, 1}) {
      for (uint32_t seed = 0; seed < 4; ++seed) {
        for (const char* norm : {"layer", "rms"}) {
          input.cells.push_back(
              MakeCell({norm, input.axes[1].labels[lr], input.axes[2].labels[decay]}, seed,
                       losses[lr][decay] + .01 * seed));
        }
      }
    }
  }
  const Comparison comparison = *Compare(input);
  EXPECT_THAT(comparison.tuned_axes, ElementsAre("lr", "decay"));
  ASSERT_THAT(comparison.rows[0].chosen, SizeIs(1));
  EXPECT_THAT(comparison.rows[0].chosen[0].labels, ElementsAre("0.2", "1"));
  EXPECT_EQ(comparison.rows[0].chosen[0].seeds, 4u);
  EXPECT_THAT(comparison.matched, SizeIs(4));
}

TEST(CompareTest, ChangedPathsLeaveTunedValuesOut) {
  ComparisonInput input = OracleGrid();
  for (Cell& cell : input.cells) {
    cell.changed = {{"training.learning_rate", cell.labels[1]}};
    if (cell.labels[0] == "rms") cell.changed["model.norm.kind"] = "rms";
  }
  EXPECT_THAT(Compare(input)->rows[1].changed, ElementsAre("model.norm.kind"));
}

}  // namespace
}  // namespace ablate::report
