#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/core/hook_points.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool HasMatrices(HookPoint hook_point) {
  return hook_point == HookPoint::kAttentionScores || hook_point == HookPoint::kAttentionWeights;
}

std::vector<std::string> RowHookPoints(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const ModelHookPoint& place : HookPointsOf(model)) {
    if (!HasMatrices(place.hook_point)) names.push_back(place.name);
  }
  return names;
}

TEST(CaptureTest, GivesWhatIsReadWithWhatComesOfIt) {
  const AnalysisResult result =
      Analyzed({CaptureOptions{{"block.1.output", "embedding"}}, {ModelM()}, {8, ""}});
  ASSERT_EQ(result.arrays.size(), 4u);
  EXPECT_EQ(result.arrays[0].name, "block.1.output");
  EXPECT_THAT(result.arrays[0].axes, ElementsAre("token", "feature"));
  EXPECT_THAT(result.arrays[0].shape, ElementsAre(8, 4));
  EXPECT_EQ(result.arrays[0].type, TensorType::kF64);
  EXPECT_EQ(result.arrays[2].name, "tokens");
  EXPECT_TRUE(ArrayIn(result, "tokens").equal(at::tensor({1, 4, 2, 6, 1, 4, 2, 6}, at::kDouble)));
  EXPECT_THAT(result.arrays[3].axes, ElementsAre("sequence"));
  EXPECT_TRUE(ArrayIn(result, "lengths").equal(at::tensor({8}, at::kDouble)));
  EXPECT_THAT(result.notes, ElementsAre("of 8 tokens in 1 sequences"));
  // Token 1 at position 0.
  ExpectOracle(ArrayIn(result, "embedding")[0][2].item<double>(),
               (R(42, {440})[4 + 2] + R(42, {440})[28 + 2]).item<double>());
}

TEST(CaptureTest, GivesTheAttentionOracle) {
  const AnalysisResult result =
      Analyzed({CaptureOptions{{"block.1.attention.weights", "block.1.attention.scores"}},
                {ModelM()},
                {8, ""}});
  const AnalysisArray& array = ArrayNamed(result, "block.1.attention.weights");
  EXPECT_THAT(array.axes, ElementsAre("sequence", "head", "query", "key"));
  EXPECT_THAT(array.shape, ElementsAre(1, 2, 8, 8));
  const at::Tensor weights = ArrayIn(result, array.name)[0][0][3];
  ExpectOracle(weights[0].item<double>(), 0.1531216262);
  ExpectOracle(weights[1].item<double>(), 0.1716193986);
  ExpectOracle(weights[2].item<double>(), 0.4899194502);
  ExpectOracle(weights[3].item<double>(), 0.1853395251);
  EXPECT_EQ(weights[4].item<double>(), 0);
  const at::Tensor scores = ArrayIn(result, "block.1.attention.scores")[0][0][3];
  EXPECT_EQ(scores[4].item<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(at::allclose(scores.softmax(-1), weights, 1e-14));
}

TEST(CaptureTest, IsInTheSubjectsPrecision) {
  RunConfig run = ModelM().config;
  run.precision = Precision::kFloat32;
  const AnalysisResult result =
      Analyzed({CaptureOptions{{"logits"}}, {SubjectOf(run, 1)}, {8, ""}});
  EXPECT_EQ(result.arrays[0].type, TensorType::kF32);
  EXPECT_EQ(result.arrays[0].bytes.size(), 4u * 8 * 7);
}

TEST(CaptureTest, RefusesMatricesOfSeveralLengths) {
  const RunConfig run = DrawnRun(0);
  ASSERT_TRUE(std::holds_alternative<DocumentsTask>(run.task));
  RunConfig attends = run;
  attends.model.attention.kind = AttentionKind::kSoftmax;
  const auto made = MakeAnalysis({CaptureOptions{{"embedding", "block.0.attention.weights"}},
                                  {SubjectOf(attends, 0)},
                                  {1000, ""}});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(made.status().message(),
              HasSubstr("analysis.capture.sites[1]: block.0.attention.weights has a matrix for "
                        "each sequence, and the sequences that are read have from "));
}

TEST(CaptureTest, TakesAsManyBytesAsItsCostSays) {
  const AnalysisRequest request = {
      CaptureOptions{{"block.0.feed_forward.hidden", "logits", "block.0.attention.weights"}},
      {ModelM()},
      {8, ""}};
  const AnalysisResult result = Analyzed(request);
  uint64_t bytes = 0;
  for (size_t i = 0; i < 3; ++i) bytes += result.arrays[i].bytes.size();
  const AnalysisCost cost = CostOf(request, 8);
  EXPECT_EQ(cost.state_bytes, bytes);
  EXPECT_EQ(cost.array_bytes, bytes + 2 * 8 * 8);  // at most as many sequences as tokens
}

TEST(CaptureTest, GivesTheSameBitsWhereverItIsCut) {
  for (const uint64_t number : {0, 3}) {
    const AnalysisSubject subject = DrawnSubject(number);
    ExpectSameBitsWhereverItIsCut(
        {CaptureOptions{RowHookPoints(subject.config.model)}, {subject}, {60, ""}});
  }
}

TEST(CaptureTest, AgreesWithSequencesByThemselvesOverTheFamily) {
  for (uint64_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(number);
    const RunConfig run = DrawnRun(number);
    const bool documents = std::holds_alternative<DocumentsTask>(run.task);
    const std::vector<std::string> hook_points =
        documents ? RowHookPoints(run.model) : HookPointNames(run.model);
    const AnalysisRequest request = {
        CaptureOptions{hook_points}, {SubjectOf(run, number)}, {30, ""}};
    const absl::StatusOr<AnalysisContext> analysis = ReadAnalysisContext(request);
    ASSERT_TRUE(analysis.ok()) << analysis.status();
    const AnalysisResult result = Analyzed(request);
    const double tolerance = ToleranceIn(run.precision);
    for (const std::string& hook_point : hook_points) {
      SCOPED_TRACE(hook_point);
      const at::Tensor alone = RowsAlone(*analysis, analysis->subjects[0], hook_point);
      const at::Tensor captured = ArrayIn(result, hook_point);
      EXPECT_TRUE(at::allclose(captured.reshape(alone.sizes()), alone, tolerance, tolerance));
    }
  }
}

TEST(CapturedBatchesTest, ComputesTheFirstBatchOnce) {
  const std::vector<std::string> hook_points = {"embedding", "block.1.output", "logits"};
  absl::StatusOr<AnalysisContext> analysis =
      ReadAnalysisContext({CaptureOptions{hook_points}, {ModelM()}, {8, ""}});
  ASSERT_TRUE(analysis.ok()) << analysis.status();
  const SubjectModel& subject = analysis->subjects[0];
  const auto expect_first = [&](const std::vector<at::Tensor>& captured) {
    const std::vector<at::Tensor> wanted =
        CaptureHookPoints(*analysis, subject, analysis->Batch(0), hook_points);
    ASSERT_EQ(captured.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(captured[i].equal(wanted[i])) << i;
  };
  CapturedBatches batches(*analysis, subject, hook_points);
  const std::atomic<bool> stop{true};  // each pass throws
  analysis->stop = &stop;
  const std::vector<at::Tensor> taken = batches.Take(0);
  EXPECT_THROW(batches.Take(0), c10::Error);
  analysis->stop = nullptr;
  expect_first(taken);
  expect_first(batches.Take(0));
  EXPECT_TRUE(batches.TakeRows(0)[2].equal(taken[2].to(at::kDouble)));
}

}  // namespace
}  // namespace ablate::engine
