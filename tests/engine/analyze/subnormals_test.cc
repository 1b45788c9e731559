// Tests that analyses take subnormal numbers as 0, as training does.
#include <gtest/gtest.h>

#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

TEST(AnalysisTest, TakesSubnormalNumbersAs0) {
  RunConfig run = ModelM().config;
  run.precision = Precision::kFloat32;
  const ParameterLayout layout = MakeLayout(run.model);
  at::Tensor values = at::zeros({layout.size}, at::kFloat);
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.name != "token_embedding.weight") continue;
    values.narrow(0, parameter.offset, parameter.size).fill_(1e-40F);
  }
  ASSERT_GT(values.max().item<float>(), 0);
  // The sum with the embedding of a position, which is 0.
  const AnalysisResult result =
      Analyzed({CaptureOptions{{"embedding"}}, {{run, CheckpointOf(run, values)}}, {8, ""}});
  EXPECT_EQ(ArrayIn(result, "embedding").abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace ablate::engine
