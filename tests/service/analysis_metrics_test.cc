// Tests numbers of analyses as metrics of the experiment that labels them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/analysis.h"
#include "tests/service/analysis_fixture.h"

namespace ablate::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AnalysisMetricsTest : public AnalysisTest {
 protected:
  // A rank of one cell, 0 or 1.
  void Analyze(int cell, double rank) {
    v1::CreateAnalysisRequest request = RequestOf("analysis { spectrum {} }");
    v1::AnalysisSubject* subject = request.add_subjects();
    subject->set_experiment(experiment_);
    subject->set_cell(CellAt(cell));
    const std::string name = Ask(request).analysis().name();
    v1::Analysis result;
    (*result.mutable_numbers())["rank"].set_value(rank);
    analyst_->ComputationResult(analyst_->NextAnalysis(), result);
    WaitUntil(name, v1::AnalysisState::DONE);
  }
  // The loss of one cell, by sequence; the mean of `values`.
  void AnalyzeLoss(int cell, double loss, const std::vector<double>& values) {
    v1::CreateAnalysisRequest request = RequestOf("analysis { predictions {} }");
    v1::AnalysisSubject* subject = request.add_subjects();
    subject->set_experiment(experiment_);
    subject->set_cell(CellAt(cell));
    const std::string name = Ask(request).analysis().name();
    const auto count = static_cast<int64_t>(values.size());
    engine::AnalysisArray array{
        "by_sequence/loss", {"part", "sequence"}, {2, count}, TensorType::kF64, {}};
    for (const std::vector<double>& part : {values, std::vector<double>(values.size(), 1)}) {
      array.bytes.append(reinterpret_cast<const char*>(part.data()), part.size() * sizeof(double));
    }
    v1::Analysis result;
    (*result.mutable_numbers())["loss"].set_value(loss);
    v1::AnalysisArrayInfo* info = result.add_arrays();
    info->set_name(array.name);
    info->add_axes("part");
    info->add_axes("sequence");
    info->add_shape(2);
    info->add_shape(count);
    analyst_->ComputationResult(analyst_->NextAnalysis(), result, *engine::WriteArrays({array}));
    WaitUntil(name, v1::AnalysisState::DONE);
  }
  std::string CellAt(int cell) { return Rows(experiment_)[static_cast<size_t>(cell)].cell(); }

  // Returns "KEY COUNT" of numbers of analyses.
  std::vector<std::string> Numbers(const std::string& parent, const std::string& cell = "") {
    std::vector<std::string> numbers;
    const v1::ListMetricsResponse response = ListMetrics(parent, cell);
    for (const v1::MetricInfo& metric : response.metrics()) {
      if (metric.of_analysis()) numbers.push_back(absl::StrCat(metric.key(), " ", metric.count()));
    }
    return numbers;
  }

  const std::unique_ptr<FakeWorker> analyst_ = MakeAnalyst();
};

TEST_F(AnalysisMetricsTest, AreListedForTheExperimentAndForEachCell) {
  Analyze(0, 2.5);
  EXPECT_THAT(Numbers(experiment_), ElementsAre("spectrum/rank 1"));
  EXPECT_THAT(Numbers(experiment_, CellAt(0)), ElementsAre("spectrum/rank 1"));
  EXPECT_THAT(Numbers(experiment_, CellAt(1)), IsEmpty());
  EXPECT_THAT(Numbers(run_), IsEmpty()) << "a run knows no labels";
  Analyze(1, 3);
  EXPECT_THAT(Numbers(experiment_), ElementsAre("spectrum/rank 2"));
}

TEST_F(AnalysisMetricsTest, AreReadForOneCell) {
  Analyze(0, 2.5);
  Analyze(1, 3);
  v1::QueryMetricsRequest request;
  request.set_experiment(experiment_);
  request.add_keys("spectrum/rank");
  EXPECT_EQ(Query(request).size(), 2u);
  request.set_cell(CellAt(1));
  const std::vector<v1::Series> one = Query(request);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].cell(), CellAt(1));
  EXPECT_THAT(one[0].values(), ElementsAre(3));
}

TEST_F(AnalysisMetricsTest, AreComparedBySequenceIfEachSettingHasOneRun) {
  const std::vector<double> pre = {2, 2.5, 1.5, 2, 3, 1, 2.25, 1.75},
                            post = {3, 3, 3, 3, 4, 2, 3, 3};
  AnalyzeLoss(0, 2, pre);
  AnalyzeLoss(1, 3, post);
  v1::CompareRequest request;
  request.set_experiment(experiment_);
  request.set_key("predictions/loss");
  const v1::Comparison comparison = Compare(request);
  EXPECT_EQ(comparison.unit(), v1::PairUnit::SEQUENCE);
  ASSERT_EQ(comparison.rows_size(), 2);
  const v1::ComparisonRow& row = comparison.rows(1);
  EXPECT_EQ(row.n(), 1u);
  ASSERT_EQ(row.runs_size(), 1);
  EXPECT_EQ(row.runs(0).value(), 3);
  EXPECT_EQ(row.pairs(), 8u);
  EXPECT_EQ(row.losses(), 8u);
  EXPECT_DOUBLE_EQ(row.difference().mean(), 1);
  EXPECT_DOUBLE_EQ(row.p(), 2.0 / 256);
  EXPECT_THAT(comparison.text(), HasSubstr("over 8 sequences"));
  EXPECT_THAT(comparison.text(), HasSubstr("not about other training seeds"));
  v1::RenderTableRequest table;
  *table.mutable_comparison() = request;
  table.set_format(v1::TableFormat::csv);
  const std::string csv = AnswerOf(*reports_, &v1::Reports::Stub::RenderTable, table).data();
  EXPECT_THAT(csv, HasSubstr(",unit\r\n"));
  EXPECT_THAT(csv, HasSubstr(",sequence\r\n"));
  request.set_key("train/loss");
  EXPECT_EQ(Compare(request).unit(), v1::PairUnit::SEED);
}

TEST_F(AnalysisMetricsTest, ACellNeedsItsExperiment) {
  v1::QueryMetricsRequest query;
  query.add_runs(run_);
  query.set_cell(CellAt(0));
  EXPECT_EQ(TryQuery(query).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto list = [this](const std::string& parent, const std::string& cell) {
    v1::ListMetricsRequest request;
    request.set_parent(parent);
    request.set_cell(cell);
    return StatusOf(*metrics_, &v1::Metrics::Stub::ListMetrics, request).error_code();
  };
  EXPECT_EQ(list(run_, CellAt(0)), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(list(experiment_, "none"), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace ablate::service
