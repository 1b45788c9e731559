#include <gtest/gtest.h>

#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

at::Tensor OracleRows() {
  at::Tensor x = R(3, {12, 5});
  x.select(1, 0) += 2;
  return x;
}

AnalysisResult SpectrumOf(const at::Tensor& rows) {
  const auto [subject, prompt] = ModelOfRows(rows);
  return Analyzed({SpectrumOptions{"embedding"}, {subject}, {0, prompt}});
}

TEST(SpectrumTest, GivesTheOracle) {
  ExpectOracles(SpectrumOf(OracleRows()), {{"uncentred_effective_rank", 3.821394496},
                                           {"uncentred_effective_rank_of_squares", 2.016931204},
                                           {"uncentred_participation_ratio", 1.463291659},
                                           {"uncentred_stable_rank", 1.218089321},
                                           {"uncentred_largest_singular_value", 7.569962175},
                                           {"effective_rank", 4.546030617},
                                           {"effective_rank_of_squares", 3.954155824},
                                           {"participation_ratio", 3.627301339},
                                           {"stable_rank", 2.837970075},
                                           {"isoscore", 0.6568253349}});
}

TEST(SpectrumTest, IsUndefinedWhereNothingVaries) {
  const AnalysisResult same = SpectrumOf(at::ones({6, 3}, at::kDouble) * 0.1);
  EXPECT_EQ(ReasonIn(same, "participation_ratio"), Undefined::kZeroVariance);
  EXPECT_NEAR(NumberIn(same, "uncentred_stable_rank"), 1, 1e-12);
  const AnalysisResult nothing = SpectrumOf(at::zeros({6, 3}, at::kDouble));
  EXPECT_EQ(ReasonIn(nothing, "uncentred_effective_rank"), Undefined::kZeroVariance);
  EXPECT_EQ(ReasonIn(SpectrumOf(at::ones({1, 3}, at::kDouble)), "effective_rank"),
            Undefined::kTooFewTokens);
  EXPECT_EQ(ReasonIn(SpectrumOf(R(1, {6, 1})), "isoscore"), Undefined::kZeroDenominator);
}

TEST(SpectrumTest, FindsTheDirectionThatALayerNormTakesAway) {
  // Its centred outputs span at most d − 1 directions, for any gain and bias.
  RunConfig run = ModelM().config;
  run.model.norm.placement = NormPlacement::kPost;
  run.model.norm.final = false;
  const ParameterLayout layout = MakeLayout(run.model);
  const AnalysisSubject subject = {run, CheckpointOf(run, R(5, {layout.size}))};
  const AnalysisResult result = Analyzed({SpectrumOptions{}, {subject}, {100, ""}});
  const at::Tensor centred = ArrayIn(result, "singular_values");
  const at::Tensor uncentred = ArrayIn(result, "uncentred_singular_values");
  EXPECT_LT(centred[3].item<double>(), 1e-7 * centred[0].item<double>());
  EXPECT_GT(uncentred[3].item<double>(), 1e-6 * uncentred[0].item<double>());
}

}  // namespace
}  // namespace ablate::engine
