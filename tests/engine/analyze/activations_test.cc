#include <gtest/gtest.h>

#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/engine/analyze/values_by_hand.h"

namespace ablate::engine {
namespace {

TEST(ActivationsTest, GiveTheOracle) {
  const AnalysisResult result = Analyzed({ActivationsOptions{}, {ModelM()}, {8, ""}});
  ExpectOracle(NumberIn(result, "mean/block.0.output"), -0.3026416457);
  ExpectOracle(NumberIn(result, "variance/block.0.output"), 10.57938666);
  ExpectOracle(NumberIn(result, "skewness/block.0.output"), -0.1984312881);
  ExpectOracle(NumberIn(result, "kurtosis/block.0.output"), 1.949549663);
  EXPECT_EQ(result.numbers.size(), 3u * 14);
  EXPECT_TRUE(result.arrays.empty());
  EXPECT_EQ(result.notes[0], "of 8 tokens");
  EXPECT_EQ(result.notes[1], "places in their order: embedding, block.0.output, block.1.output");
}

TEST(ActivationsTest, HaveHistogramsWhereAsked) {
  const AnalysisRequest request = {ActivationsOptions{{}, true}, {ModelM()}, {8, ""}};
  const AnalysisResult result = Analyzed(request);
  EXPECT_TRUE(ArrayIn(result, "histogram").sum(1).equal(at::full({3}, 32.0, at::kDouble)));
  const AnalysisCost cost = CostOf(request, 8);
  EXPECT_EQ(cost.array_bytes, BytesOfArrays(result));
  EXPECT_EQ(cost.forwards, 2);
}

TEST(ActivationsTest, AreUndefinedWhereAValueIsNotFinite) {
  at::Tensor rows = R(1, {6, 3});
  rows[2][1] = std::numeric_limits<double>::infinity();
  const auto [subject, prompt] = ModelOfRows(rows);
  const AnalysisResult result =
      Analyzed({ActivationsOptions{{"embedding"}, true}, {subject}, {0, prompt}});
  ExpectUndefined(result, Undefined::kNonFinite, {"mean/embedding", "largest_feature/embedding"});
}

TEST(ActivationsTest, AgreeWithEachDefinitionOverTheFamily) {
  for (uint64_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(number);
    const RunConfig run = DrawnRun(number);
    const std::vector<std::string> hook_points = {"embedding", "block.0.feed_forward.output",
                                                  "logits"};
    const AnalysisRequest request = {
        ActivationsOptions{hook_points}, {SubjectOf(run, number)}, {60, ""}};
    const absl::StatusOr<AnalysisContext> analysis = ReadAnalysisContext(request);
    ASSERT_TRUE(analysis.ok()) << analysis.status();
    const AnalysisResult result = Analyzed(request);
    const double tolerance = ToleranceIn(run.precision);
    for (const std::string& hook_point : hook_points) {
      const at::Tensor rows = RowsAlone(*analysis, analysis->subjects[0], hook_point);
      ExpectValues(result, hook_point, rows, tolerance);
      const at::Tensor squares = rows.square().sum(0);
      EXPECT_NEAR(NumberIn(result, "largest_feature_share/" + hook_point),
                  (squares.max() / squares.sum()).item<double>(), tolerance);
    }
  }
}

}  // namespace
}  // namespace ablate::engine
