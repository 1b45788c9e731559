#include <gtest/gtest.h>

#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/engine/analyze/values_by_hand.h"

namespace ablate::engine {
namespace {

AnalysisRequest WeightsOf(const AnalysisSubject& subject, bool histograms = false) {
  return {WeightsOptions{histograms}, {subject}, {}};
}

TEST(WeightsTest, GiveTheOracle) {
  const AnalysisResult result = Analyzed(WeightsOf(ModelM()));
  ExpectOracle(NumberIn(result, "mean/block.0.feed_forward.up.weight"), -0.02780611085);
  ExpectOracle(NumberIn(result, "variance/block.0.feed_forward.up.weight"), 0.3475523405);
  ExpectOracle(NumberIn(result, "skewness/block.0.feed_forward.up.weight"), 0.1206677812);
  ExpectOracle(NumberIn(result, "kurtosis/block.0.feed_forward.up.weight"), 2.024184424);
  ExpectOracle(NumberIn(result, "l2_norm/block.0.feed_forward.up.weight"), 3.338624964);
  EXPECT_EQ(result.notes[0], "of 440 parameters");
}

TEST(WeightsTest, HaveNoKurtosisIfGainsAreUntrained) {
  const AnalysisResult result = Analyzed(WeightsOf(UntrainedSubject(ModelM().config)));
  EXPECT_EQ(ReasonIn(result, "kurtosis/final_norm.weight"), Undefined::kZeroVariance);
  EXPECT_EQ(NumberIn(result, "mean/final_norm.weight"), 1);
}

TEST(WeightsTest, HaveHistogramsWhereAsked) {
  const AnalysisRequest request = WeightsOf(ModelM(), true);
  const AnalysisResult result = Analyzed(request);
  const at::Tensor counts = ArrayIn(result, "histogram").sum(1);
  const ParameterLayout layout = MakeLayout(ModelM().config.model);
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    EXPECT_EQ(counts[static_cast<int64_t>(i)].item<double>(),
              static_cast<double>(layout.parameters[i].size));
  }
  EXPECT_EQ(CostOf(request, 0).array_bytes, BytesOfArrays(result));
}

TEST(WeightsTest, ReadsLargeTensorsInParts) {
  // More values than exact quantiles allow, and than a piece reads.
  RunConfig run = ModelM().config;
  run.precision = Precision::kFloat32;
  run.model.layers = 1;
  run.model.width = 128;
  run.model.hidden = 33'000;
  const ParameterLayout layout = MakeLayout(run.model);
  const at::Tensor values = (at::arange(layout.size, at::kFloat) * 0.7).sin();
  const AnalysisSubject subject = {run, CheckpointOf(run, values)};
  const AnalysisResult result = Analyzed(WeightsOf(subject));
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.name != "block.0.feed_forward.up.weight") continue;
    ASSERT_GT(parameter.size, kExactQuantiles);
    const at::Tensor of = values.narrow(0, parameter.offset, parameter.size).to(at::kDouble);
    EXPECT_NEAR(NumberIn(result, "mean/" + parameter.name), of.mean().item<double>(), 1e-12);
    EXPECT_NEAR(NumberIn(result, "l2_norm/" + parameter.name), of.norm().item<double>(), 1e-8);
    EXPECT_NEAR(NumberIn(result, "quantile_25/" + parameter.name),
                at::quantile(of, 0.25).item<double>(), 1e-3);
  }
}

TEST(WeightsTest, AgreeWithEachDefinitionOverTheFamily) {
  for (uint64_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const SubjectModel model = *ReadSubject(subject.config, subject.checkpoint);
    const AnalysisResult result = Analyzed(WeightsOf(subject));
    for (const ParameterInfo& parameter : model.layout.parameters) {
      const at::Tensor values =
          model.values.narrow(0, parameter.offset, parameter.size).to(at::kDouble);
      ExpectValues(result, parameter.name, values, 1e-9);
    }
  }
}

}  // namespace
}  // namespace ablate::engine
