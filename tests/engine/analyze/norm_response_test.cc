#include <gtest/gtest.h>

#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_norm.h"

namespace ablate::engine {
namespace {

AnalysisResult ResponseTo(double mean, double deviation, uint32_t size, uint32_t seed = 0) {
  return Analyzed({NormResponseOptions{mean, deviation, size}, {}, {}, seed});
}

TEST(NormResponseTest, DrawsTheWildVector) {
  const AnalysisResult result = ResponseTo(5, 10, 100'000);
  EXPECT_NEAR(NumberIn(result, "mean/input"), 5, 0.15);
  EXPECT_NEAR(NumberIn(result, "deviation/input"), 10, 0.15);
  EXPECT_FALSE(at::equal(ArrayIn(ResponseTo(5, 10, 8, 0), "input"),
                         ArrayIn(ResponseTo(5, 10, 8, 1), "input")));
  // A shorter vector is the beginning of a longer one.
  EXPECT_TRUE(at::equal(ArrayIn(ResponseTo(5, 10, 8), "input"),
                        ArrayIn(ResponseTo(5, 10, 20), "input").narrow(0, 0, 8)));
}

TEST(NormResponseTest, AppliesEveryNormAsItsFormulaIsWritten) {
  for (const uint32_t size : {2u, 7u, 100u}) {
    const AnalysisResult result = ResponseTo(5, 10, size);
    const at::Tensor x = ArrayIn(result, "input").unsqueeze(0);
    const auto expect = [&](const std::string& name, NormKind kind, NormDeviation deviation,
                            double eps) {
      NormConfig norm;
      norm.kind = kind;
      norm.deviation = deviation;
      norm.eps = eps;
      const at::Tensor expected = PlainNorm(x, norm)[0], found = ArrayIn(result, name);
      EXPECT_LT((expected - found).abs().max().item<double>(), 1e-12) << name;
      ExpectOracle(NumberIn(result, "mean/" + name), expected.mean().item<double>());
      ExpectOracle(NumberIn(result, "deviation/" + name), expected.std(false).item<double>());
      ExpectOracle(NumberIn(result, "unbiased_deviation/" + name), expected.std().item<double>());
    };
    const NormDeviation population = NormDeviation::kPopulation;
    expect("layer_norm", NormKind::kLayer, population, 1e-5);
    expect("textbook_layer_norm", NormKind::kLayer, NormDeviation::kUnbiasedEpsOutside, 1e-6);
    expect("rms_norm", NormKind::kRms, population, 1e-5);
    expect("l2_norm", NormKind::kL2, population, 1e-5);
    EXPECT_NEAR(NumberIn(result, "deviation/textbook_layer_norm") /
                    NumberIn(result, "deviation/layer_norm"),
                std::sqrt((size - 1.0) / size), 1e-4);
  }
}

TEST(NormResponseTest, IsUndefinedWhereANormNeedsAnotherNumber) {
  const AnalysisResult result = ResponseTo(5, 10, 100);
  for (const char* name : {"mean/batch_norm", "deviation/batch_norm"}) {
    EXPECT_EQ(ReasonIn(result, name), Undefined::kTooFewTokens);
  }
  const AnalysisResult one = ResponseTo(5, 10, 1);
  EXPECT_EQ(ReasonIn(one, "unbiased_deviation/input"), Undefined::kTooFewTokens);
  EXPECT_EQ(ReasonIn(one, "mean/textbook_layer_norm"), Undefined::kTooFewTokens);
  EXPECT_EQ(NumberIn(one, "deviation/layer_norm"), 0);
}

TEST(NormResponseTest, GivesTheSameBitsWhereverItIsCut) {
  ExpectSameBitsWhereverItIsCut({NormResponseOptions{}, {}, {}, 3});
}

}  // namespace
}  // namespace ablate::engine
