// Tests results of other tools through the server: kept, compared, found, refused.
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/imports/example_results.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using imports::TwoSettings;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ImportServiceTest : public ServiceTest {
 protected:
  // Sends the options, then each run in a message of its own.
  grpc::Status TryImport(const v1::ImportRequest& results, const std::string& options,
                         v1::ImportResponse* response) {
    grpc::ClientContext context;
    const auto writer = experiments_->Import(&context, response);
    v1::ImportRequest message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("source: 'table' ", options), message.mutable_options()));
    bool open = writer->Write(message);
    for (const v1::ImportedRun& run : results.runs()) {
      v1::ImportRequest part;
      *part.add_runs() = run;
      open = open && writer->Write(part);
    }
    writer->WritesDone();
    return writer->Finish();
  }
  v1::ImportResponse Import(const v1::ImportRequest& results, const std::string& options) {
    v1::ImportResponse response;
    const grpc::Status status = TryImport(results, options, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::Comparison CompareStored(const std::string& experiment) {
    v1::CompareRequest request;
    request.set_experiment(experiment);
    return AnswerOf(*metrics_, &v1::Metrics::Stub::Compare, request);
  }
  static std::string Kept(const std::string& id) {
    return absl::StrCat("name: 'kept' request_id: '", id, "'");
  }
};

TEST_F(ImportServiceTest, KeepsResultsAsAnExperimentThatHasEnded) {
  const v1::ImportResponse kept = Import(TwoSettings(8), Kept("1"));
  EXPECT_EQ(kept.runs(), 16u);
  EXPECT_EQ(kept.reused(), 0u);
  v1::GetExperimentRequest get;
  get.set_name(kept.experiment());
  const auto experiment = AnswerOf(*experiments_, &v1::Experiments::Stub::GetExperiment, get);
  EXPECT_EQ(experiment.state(), v1::ExperimentState::ENDED);
  EXPECT_EQ(experiment.counts().done(), 16u);
  v1::QueryMetricsRequest query;
  query.set_experiment(kept.experiment());
  query.set_cell("post-s2");
  grpc::ClientContext context;
  const auto reader = metrics_->QueryMetrics(&context, query);
  v1::Series series;
  ASSERT_TRUE(reader->Read(&series));
  EXPECT_THAT(series.steps(), testing::ElementsAre(0u, 10u));
  EXPECT_EQ(series.values(1), 5 + 0.1 * 2 * 2 - 1) << "to the last bit";
  while (reader->Read(&series)) {
  }
}

// Equals the comparison of the kept experiment, except for its name.
TEST_F(ImportServiceTest, JudgesWithoutKeepingByTheSameNumbers) {
  v1::Comparison judged =
      Import(TwoSettings(8), "validate_only: true gate { looks: true }").comparison();
  EXPECT_EQ(judged.gate().decision(), v1::Gate::BETTER);
  EXPECT_THAT(judged.experiment(), IsEmpty());
  v1::ListExperimentsRequest list;
  EXPECT_THAT(AnswerOf(*experiments_, &v1::Experiments::Stub::ListExperiments, list).experiments(),
              IsEmpty());
  v1::Comparison stored = CompareStored(Import(TwoSettings(8), Kept("1")).experiment());
  judged.clear_gate();
  stored.clear_experiment();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(judged, stored))
      << judged.DebugString() << stored.DebugString();
}

TEST_F(ImportServiceTest, SharesRunsAndFindsWhatItHas) {
  const v1::ImportResponse first = Import(TwoSettings(4), Kept("1"));
  const v1::ImportResponse same = Import(TwoSettings(4), Kept("2"));
  EXPECT_EQ(same.experiment(), first.experiment());
  EXPECT_TRUE(same.repeated());
  const v1::ImportResponse grown = Import(TwoSettings(6), Kept("3"));
  EXPECT_NE(grown.experiment(), first.experiment());
  EXPECT_EQ(grown.reused(), 8u);
  EXPECT_EQ(grown.runs(), 12u);
  v1::ImportResponse other;
  EXPECT_EQ(TryImport(TwoSettings(5), Kept("3"), &other).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(ImportServiceTest, CountsDivergedRuns) {
  v1::ImportRequest results = TwoSettings(6);
  results.mutable_runs(1)->mutable_series(0)->set_values(1,
                                                         std::numeric_limits<double>::quiet_NaN());
  const v1::Comparison compared = CompareStored(Import(results, Kept("1")).experiment());
  EXPECT_EQ(compared.rows(1).diverged(), 1u);
}

TEST_F(ImportServiceTest, KeepsTheBestValueAsAMetricOfItsOwn) {
  const v1::Comparison compared =
      CompareStored(Import(TwoSettings(6), absl::StrCat(Kept("1"), " best: true")).experiment());
  EXPECT_EQ(compared.key(), "loss@best");
  EXPECT_EQ(compared.rows(0).n(), 6u);
}

TEST_F(ImportServiceTest, RefusesWithoutKeepingAnything) {
  const auto refusal = [this](const v1::ImportRequest& results, const std::string& options) {
    v1::ImportResponse response;
    const grpc::Status status = TryImport(results, options, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_THAT(refusal(TwoSettings(2), "name: 'x'"), HasSubstr("request_id: missing"));
  EXPECT_THAT(refusal(TwoSettings(2), "request_id: '1' name: 'Bad'"), HasSubstr("valid name"));
  EXPECT_THAT(refusal(TwoSettings(2), "validate_only: true margin: -1"),
              HasSubstr("margin: -1 is out of range"));
  EXPECT_THAT(refusal(v1::ImportRequest(), Kept("1")), HasSubstr("runs: there are none"));
  v1::ImportRequest last_is_wrong = TwoSettings(2);
  last_is_wrong.mutable_runs(3)->mutable_series(0)->clear_steps();
  EXPECT_THAT(refusal(last_is_wrong, Kept("1")), HasSubstr("2 values, 0 steps"));
  EXPECT_THAT(refusal(TwoSettings(2), "validate_only: true gate { level: 0.5 }"),
              HasSubstr("gate.level: 0.5 is out of range"));
  v1::ListExperimentsRequest list;
  EXPECT_THAT(AnswerOf(*experiments_, &v1::Experiments::Stub::ListExperiments, list).experiments(),
              IsEmpty());
}

TEST_F(ImportServiceTest, RefusesASubmittedSpecOfResults) {
  v1::CreateExperimentRequest request;
  *request.mutable_spec() = SpecOf("name: 'x' base { imported { source: 'x' } }");
  EXPECT_THAT(TryCreate(request).error_message(), HasSubstr("base.imported: results can't be"));
}

TEST_F(ImportServiceTest, KeepsManyPoints) {
  v1::ImportRequest results = TwoSettings(3);
  for (v1::ImportedRun& run : *results.mutable_runs()) {
    v1::ImportedSeries* series = run.mutable_series(0);
    series->clear_steps();
    series->clear_values();
    for (uint32_t step = 0; step < 60'000; ++step) {
      series->add_steps(step);
      series->add_values(step * 0.1 + (run.name()[1] == 'o' ? 1 : 0));
    }
  }
  const v1::ImportResponse kept = Import(results, Kept("1"));
  v1::ListMetricsRequest list;
  list.set_parent(kept.experiment());
  EXPECT_EQ(AnswerOf(*metrics_, &v1::Metrics::Stub::ListMetrics, list).metrics(0).count(),
            360'000u);
}

}  // namespace
}  // namespace ablate::service
