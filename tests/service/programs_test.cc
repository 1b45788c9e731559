// Tests runs that are users' programs through the server: submits, lists, comparisons, SQL, logs.
#include <google/protobuf/util/json_util.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_set.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Two settings of a switch × two learning rates, each with two seeds.
v1::ExperimentSpec SwitchSpec(const std::string& report = "") {
  v1::ExperimentSpec spec = SpecOf(R"(
    name: "own"
    base { program { command: ["python", "train.py"] threads: 1 } }
    axes { field: "settings.norm" values { bool_value: false } values { bool_value: true } }
    axes { field: "settings.lr" values { number_value: 0.01 } values { number_value: 0.1 } }
    seeds { count: 2 } )" + report);
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(
                  R"({"norm": false, "lr": 0.01, "optimizer": "adam", "model": {"heads": 4}})",
                  spec.mutable_base()->mutable_settings())
                  .ok());
  return spec;
}

class ProgramsServiceTest : public ServiceTest {
 protected:
  // Trains cells: `key` ends at 1 + seed / 10, 0.5 lower with the switch.
  void Train(size_t runs, const std::string& key, bool counted = false) {
    const auto worker = MakeWorker("programs-w");
    for (size_t i = 0; i < runs; ++i) {
      const FakeWorker::Leased run = worker->NextRun();
      worker->Started(run);
      const auto& settings = run.run.spec().spec().settings().fields();
      const bool norm = settings.at("norm").bool_value();
      const double value = 1 + run.run.spec().seed() / 10. - (norm ? 0.5 : 0);
      std::vector<FakeWorker::Series> series = {{key, {0, 30}, {9, value}}};
      if (counted) series.push_back({"parameters", {0}, {norm ? 200. : 100.}});
      worker->Points(run, series, 30);
      worker->Finished(run, 30);
      worker->Settle();
    }
  }
  std::vector<std::string> Cells(const std::string& filter, const std::string& order = "") {
    v1::ListRunsRequest request;
    request.set_experiment("experiments/-");
    request.set_filter(filter);
    request.set_order_by(order);
    std::vector<std::string> cells;
    const auto listed = AnswerOf(*runs_, &v1::Runs::Stub::ListRuns, request);
    for (const v1::RunRow& row : listed.rows()) cells.push_back(row.cell());
    return cells;
  }
  std::string ListRefusal(const std::string& filter) {
    v1::ListRunsRequest request;
    request.set_experiment("experiments/-");
    request.set_filter(filter);
    return StatusOf(*runs_, &v1::Runs::Stub::ListRuns, request).error_message();
  }
};

TEST_F(ProgramsServiceTest, IsRefusedWithTheReasonWhileNoWorkerTakesPrograms) {
  const auto worker = MakeWorker();
  v1::CreateExperimentRequest request;
  *request.mutable_spec() = SwitchSpec();
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("no worker takes programs: bwrap isn't installed"));
}

TEST_F(ProgramsServiceTest, RunsWhereItsDeviceIs) {
  const auto cores = MakeWorker("programs-w");
  v1::ExperimentSpec spec = SwitchSpec();
  spec.mutable_base()->mutable_program()->set_device(v1::ProgramDevice::cuda);
  v1::CreateExperimentRequest request;
  *request.mutable_spec() = spec;
  EXPECT_THAT(TryCreate(request).error_message(),
              HasSubstr("no worker takes programs on a GPU; expected cpu"));
  const auto gpu = MakeWorker("cuda-0-programs-w");
  Create(spec);
  EXPECT_EQ(gpu->NextRun().run.spec().spec().program().device(), v1::ProgramDevice::cuda);
  v1::ExperimentSpec model = SmallSpec(1, "model");
  model.mutable_base()->mutable_training()->set_device(v1::Device::cuda);
  *request.mutable_spec() = model;
  EXPECT_THAT(TryCreate(request).error_message(), HasSubstr("no GPU"))
      << "a worker of programs trains no model";
}

TEST_F(ProgramsServiceTest, PreviewsItsRuns) {
  const auto worker = MakeWorker("programs-w");
  const v1::CreateExperimentResponse preview = Preview(SwitchSpec());
  EXPECT_THAT(preview.problems(), IsEmpty());
  EXPECT_EQ(preview.cells_size(), 8);
  EXPECT_EQ(preview.cells(0).name(), "norm-false-lr0.01-s0");
  for (const v1::SettingParameters& setting : preview.parameters()) {
    EXPECT_EQ(setting.parameters(), 0u);
  }
}

TEST_F(ProgramsServiceTest, ReusesRunsUnlessItIsToldNotTo) {
  const auto worker = MakeWorker("programs-w");
  Create(SwitchSpec());
  v1::ExperimentSpec spec = SwitchSpec();
  spec.set_name("again");
  EXPECT_EQ(Create(spec).reused(), 8u);
  spec.mutable_base()->mutable_program()->set_reuse(false);
  EXPECT_EQ(Create(spec).reused(), 0u);
}

TEST_F(ProgramsServiceTest, FindsRunsBySettingsAndMetrics) {
  {
    const auto worker = MakeWorker("programs-w");
    Create(SwitchSpec());
  }
  Train(8, "accuracy", /*counted=*/true);
  const std::vector<std::string> fast = {"norm-true-lr0.1-s0", "norm-true-lr0.1-s1"};
  EXPECT_EQ(Cells("settings.lr > 0.05 AND settings.norm = true"), fast);
  EXPECT_EQ(Cells("settings.lr = 1e-1 AND norm = true"), fast);
  EXPECT_THAT(Cells("settings.model.heads = 4 AND heads < 5 AND optimizer = adam"), SizeIs(8));
  EXPECT_THAT(Cells("settings.optimizer:AD AND settings.optimizer != sgd"), SizeIs(8));
  EXPECT_THAT(Cells("settings.model.heads > 4"), IsEmpty());
  EXPECT_THAT(Cells("accuracy < 0.55 AND seed = 0 AND settings.lr < 0.05"),
              ElementsAre("norm-true-lr0.01-s0"));
  EXPECT_THAT(Cells("parameters = 200"), SizeIs(4));
  EXPECT_THAT(Cells("lr = 0.01", "-accuracy"),
              ElementsAre("norm-false-lr0.01-s1", "norm-false-lr0.01-s0", "norm-true-lr0.01-s1",
                          "norm-true-lr0.01-s0"));
  EXPECT_THAT(ListRefusal("settings.lrr = 1"), HasSubstr("did you mean settings.lr"));
  EXPECT_THAT(ListRefusal("acuracy = 1"), HasSubstr("did you mean accuracy"));
  v1::ListRunsRequest request;
  request.set_experiment("own");
  for (const char* column : {"settings.lr", "heads", "optimizer", "settings.norm", "accuracy"}) {
    request.add_columns(column);
  }
  const auto rows = AnswerOf(*runs_, &v1::Runs::Stub::ListRuns, request).rows();
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_EQ(rows[0].values(0).number_value(), 0.01);
  EXPECT_EQ(rows[0].values(1).number_value(), 4);
  EXPECT_EQ(rows[0].values(2).string_value(), "adam");
  EXPECT_EQ(rows[0].values(3).string_value(), "false");
  EXPECT_EQ(rows[0].values(4).number_value(), 1);
}

TEST_F(ProgramsServiceTest, ComparesWhatItLogs) {
  {
    const auto worker = MakeWorker("programs-w");
    Create(SwitchSpec(R"(report { primary: "accuracy" better: higher })"));
  }
  Train(8, "accuracy");
  const v1::Comparison comparison = Compare("own");
  EXPECT_EQ(comparison.key(), "accuracy");
  for (const v1::ComparisonRow& row : comparison.rows()) EXPECT_FALSE(row.has_parameters());
  EXPECT_THAT(comparison.text(), Not(HasSubstr("parameters")));
  EXPECT_THAT(comparison.text(), HasSubstr("accuracy"));
  v1::CompareRequest other;
  other.set_experiment("own");
  other.set_key("eval/loss");
  EXPECT_THAT(TryCompare(other).error_message(),
              AllOf(HasSubstr("has \"eval/loss\""), HasSubstr("accuracy")));
}

TEST_F(ProgramsServiceTest, ReportsOnlyWhatThereIs) {
  {
    const auto worker = MakeWorker("programs-w");
    Create(SwitchSpec(R"(report { primary: "accuracy" better: higher })"));
  }
  Train(8, "accuracy");
  v1::RenderReportRequest request;
  request.add_experiments("own");
  Context context;
  std::vector<v1::FileChunk> chunks;
  const grpc::Status status = ReadAll(reports_->RenderReport(&context, request).get(), &chunks);
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::string page;
  for (const v1::FileChunk& chunk : chunks) page += chunk.data();
  EXPECT_THAT(page, AllOf(HasSubstr("accuracy"), HasSubstr("norm")));
  for (const char* absent : {"parameters", "held-out loss"}) {
    const size_t place = page.find(absent);
    EXPECT_EQ(place, std::string::npos)
        << page.substr(place == std::string::npos ? 0 : place - 200, 400);
  }
}

TEST_F(ProgramsServiceTest, StopsAfterItsLimitOfFailuresAndSaysWhy) {
  const auto worker = MakeWorker("programs-w", 2);
  v1::ExperimentSpec spec = SwitchSpec("limits { failures: 1 }");
  const v1::CreateExperimentResponse created = Create(spec);
  const std::string& name = created.experiment().name();
  const FakeWorker::Leased first = worker->NextRun(), second = worker->NextRun();
  worker->Started(second);
  worker->Failed(first, "exit code 1", /*is_final=*/true);
  worker->WaitForCancel(second);
  const v1::Experiment cancelled = Get(name);
  EXPECT_EQ(cancelled.state(), v1::ExperimentState::CANCELLED);
  EXPECT_EQ(cancelled.why_cancelled(), "1 run failed; limits.failures is 1");
  EXPECT_EQ(cancelled.counts().failed(), 1u);
  EXPECT_EQ(cancelled.counts().cancelled(), 7u);
  // The limit isn't part of a run's identity.
  spec.mutable_limits()->set_failures(5);
  spec.set_name("again");
  const v1::CreateExperimentResponse again = Create(spec);
  EXPECT_EQ(again.cells(0).run(), created.cells(0).run());
  EXPECT_EQ(Get(again.experiment().name()).state(), v1::ExperimentState::ACTIVE);
  EXPECT_EQ(Get(name).state(), v1::ExperimentState::CANCELLED);
}

TEST_F(ProgramsServiceTest, DiffersInSettings) {
  const auto worker = MakeWorker("programs-w");
  const std::string first = Create(SwitchSpec()).experiment().name();
  v1::ExperimentSpec spec = SwitchSpec();
  spec.mutable_base()->mutable_program()->set_command(1, "other.py");
  (*spec.mutable_base()->mutable_settings()->mutable_fields())["optimizer"].set_string_value(
      "muon");
  v1::DiffExperimentsRequest request;
  request.set_left(first);
  request.set_right(Create(spec).experiment().name());
  const auto diff = AnswerOf(*experiments_, &v1::Experiments::Stub::DiffExperiments, request);
  EXPECT_THAT(diff.ShortDebugString(),
              AllOf(HasSubstr("settings.optimizer"), HasSubstr("program.command")));
}

TEST_F(ProgramsServiceTest, NamesItsMetricsIfThePrimaryOneIsMissing) {
  for (const std::string report : {"", "report { primary: 'acc' better: higher }"}) {
    v1::CompareRequest request;
    {
      const auto worker = MakeWorker("programs-w");
      v1::ExperimentSpec spec = SwitchSpec(report);
      spec.mutable_base()->mutable_program()->set_reuse(false);
      request.set_experiment(Create(spec).experiment().name());
    }
    Train(8, "val_accuracy");
    EXPECT_THAT(TryCompare(request).error_message(), HasSubstr("val_accuracy")) << report;
  }
}

TEST_F(ProgramsServiceTest, SelectsTunedValuesByItsPrimaryMetric) {
  {
    const auto worker = MakeWorker("programs-w");
    v1::ExperimentSpec spec = SwitchSpec(R"(report { primary: "val_loss" better: lower })");
    spec.mutable_axes(1)->set_tune(true);
    Create(spec);
  }
  Train(8, "val_loss", /*counted=*/true);
  const v1::Comparison comparison = Compare("own");
  ASSERT_EQ(comparison.rows_size(), 2);
  EXPECT_EQ(comparison.rows(1).n(), 2u);
  EXPECT_EQ(comparison.rows(1).parameters(), 200u);
}

TEST_F(ProgramsServiceTest, HasItsSettingsInSql) {
  {
    const auto worker = MakeWorker("programs-w");
    Create(SwitchSpec());
  }
  Train(8, "accuracy");
  const auto answer = [&](const std::string& statement) {
    v1::SqlRequest request;
    request.set_statement(statement);
    Context context;
    std::vector<v1::SqlRows> parts;
    EXPECT_TRUE(ReadAll(metrics_->Sql(&context, request).get(), &parts).ok()) << statement;
    std::string text;
    for (const v1::SqlRows& part : parts) text += part.ShortDebugString();
    return text;
  };
  EXPECT_THAT(answer("SELECT count(*) AS n FROM settings WHERE kind = 'field' AND name = "
                     "'settings.lr' AND number = 0.1"),
              HasSubstr("4"));
  EXPECT_THAT(answer("SELECT DISTINCT trainer, steps, parameters IS NULL AS u FROM runs"),
              AllOf(HasSubstr("program"), HasSubstr("30"), HasSubstr("1")));
}

TEST_F(ProgramsServiceTest, HasNoModelToAnalyze) {
  const auto worker = MakeWorker("programs-w");
  Create(SwitchSpec());
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Points(run, {{"loss", {0}, {1}}}, 5);
  worker->Checkpoint(run, 5, *PackFiles({{"out/model", "x", false}}));
  worker->Finished(run, 5);
  worker->Settle();
  auto request = FromText<v1::CreateAnalysisRequest>("analysis { spectrum {} }");
  request.add_subjects()->set_run(absl::StrCat("runs/", run.run.run()));
  const grpc::Status analyzed = StatusOf(*analyses_, &v1::Analyses::Stub::CreateAnalysis, request);
  EXPECT_THAT(analyzed.error_message(), HasSubstr("is a program"));
  EXPECT_EQ(ReasonOf(analyzed), "RUN_IS_A_PROGRAM");
}

TEST_F(ProgramsServiceTest, ReadsTheLogOfARun) {
  const auto worker = MakeWorker("programs-w");
  Create(SwitchSpec());
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Log(run, "epoch 1\n\xff\n");
  worker->Settle();
  v1::ReadRunLogRequest request;
  request.set_run(absl::StrCat("runs/", run.run.run()));
  auto log = AnswerOf(*runs_, &v1::Runs::Stub::ReadRunLog, request);
  EXPECT_EQ(log.text(), "epoch 1\n\xef\xbf\xbd\n");
  EXPECT_EQ(log.next(), 10u);
  EXPECT_FALSE(log.complete());
  worker->Finished(run, 0);
  worker->Settle();
  request.set_position(log.next());
  log = AnswerOf(*runs_, &v1::Runs::Stub::ReadRunLog, request);
  EXPECT_EQ(log.text(), "");
  EXPECT_TRUE(log.complete());
}

TEST_F(ProgramsServiceTest, TakesFilesOfAProgramAsADataSet) {
  const auto worker = MakeWorker("programs-w");
  const v1::Dataset dataset =
      Upload("code", *PackFiles({{"train.py", "print(1)", false}, {"lib/a.py", "", false}}));
  EXPECT_EQ(dataset.kind(), v1::DatasetKind::files);
  EXPECT_EQ(dataset.documents(), 2u);
  v1::ExperimentSpec spec = SwitchSpec();
  const v1::Dataset data = Upload("data", *PackFiles({{"a.bin", "words", false}}));
  spec.mutable_base()->mutable_program()->set_files(dataset.name());
  spec.mutable_base()->mutable_program()->set_data(data.name());
  const auto created = Create(spec);
  EXPECT_EQ(created.experiment().spec().base().program().files(), dataset.name());
  EXPECT_EQ(created.experiment().spec().base().program().data(), data.name());
  const auto granted = worker->NextRun().run;
  EXPECT_EQ(granted.dataset_blob(), dataset.sha256());
  EXPECT_EQ(granted.data_blob(), data.sha256());
}

}  // namespace
}  // namespace ablate::service
