// Tests Generate over a real connection, with a scripted worker for analyses: requests, answers,
// and early ends, if a client, a worker or the server goes.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/analysis/samples.h"
#include "tests/service/generate_call.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using worker::v1::Analyze;

using Call = GenerateCall;

class GenerateTest : public ServiceTest {
 protected:
  GenerateTest() {
    Upload("words", "anna\nbob\ncleo\ndora\n");
    v1::ExperimentSpec spec = DocumentsSpec("words");
    for (const int step : {0, -1}) spec.mutable_base()->mutable_training()->add_checkpoints(step);
    experiment_ = Create(spec).experiment().name();
  }

  // Trains the run; its checkpoints are at steps 0 and 10.
  void Train() {
    const auto trainer = MakeWorker();
    const FakeWorker::Leased run = trainer->NextRun();
    trainer->Started(run);
    first_ = trainer->Checkpoint(run, 0, "first weights");
    last_ = trainer->Checkpoint(run, 10, "last weights");
    trainer->Finished(run, 10);
    trainer->Settle();
  }

  v1::GenerateRequest Request() {
    v1::GenerateRequest request;
    request.set_run(Rows(experiment_)[0].run());
    return request;
  }
  grpc::Status Try(const v1::GenerateRequest& request) {
    return Call(models_.get(), request).Wait();
  }

  std::string experiment_;
  std::string first_, last_;  // hashes of the checkpoints
};

TEST_F(GenerateTest, PassesSamplesOnAndEndsWithTheirShares) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  const Analyze analysis = analyst->NextAnalysis();
  analyst->AnalysisPart(analysis, {SampleOf(0, "anna", true), SampleOf(1, "anno", false)});
  analyst->AnalysisPart(analysis, {SampleOf(2, "anno", false), SampleOf(3, "é", false)});
  analyst->AnalysisResult(analysis, 3, 1);
  ASSERT_TRUE(call.Wait().ok());
  ASSERT_THAT(call.messages(), SizeIs(5));
  EXPECT_EQ(call.messages()[0].sample().text(), "anna");
  EXPECT_TRUE(call.messages()[0].sample().in_training_data());
  EXPECT_EQ(call.messages()[3].sample().index(), 3u);
  EXPECT_EQ(call.messages()[3].sample().text(), "é");
  const v1::GenerateSummary& summary = call.messages()[4].summary();
  EXPECT_EQ(summary.run(), Request().run());
  EXPECT_EQ(summary.step(), 10u);
  EXPECT_EQ(summary.samples(), 20u);
  EXPECT_EQ(summary.distinct_share(), 3 / 20.0);
  EXPECT_EQ(summary.in_training_data_share(), 1 / 20.0);
}

TEST_F(GenerateTest, RefusesAPromptThatIsLongerThanTheContext) {
  Train();
  const auto analyst = MakeAnalyst();
  v1::GenerateRequest request = Request();
  for (const size_t characters : {size_t{8}, size_t{3'900'000}}) {
    request.set_prompt(std::string(characters, 'b'));
    const grpc::Status status = Try(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "prompt");
    EXPECT_EQ(status.error_message(),
              absl::StrCat("prompt: it has ", characters,
                           " characters; expected at most 7, one less than the model's context"));
  }
  request.set_prompt("ééééééé");  // characters count, not bytes
  Call call(models_.get(), request);
  const Analyze analysis = analyst->NextAnalysis();  // its stream is as it was
  EXPECT_EQ(analysis.samples().prompt(), "ééééééé");
  analyst->AnalysisResult(analysis, 0, 0);
  EXPECT_TRUE(call.Wait().ok());
}

TEST_F(GenerateTest, AsksForTheLastCheckpointWithTheDocumentedDefaults) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_EQ(analysis.checkpoint_blob(), last_);
  EXPECT_EQ(analysis.spec().spec().model().context(), 8u);
  EXPECT_EQ(analysis.samples().count(), 20u);
  EXPECT_EQ(analysis.samples().temperature(), 1);
  EXPECT_EQ(analysis.samples().top_k(), 0u);
  EXPECT_EQ(analysis.samples().top_p(), 1);
  EXPECT_EQ(analysis.samples().seed(), 0u);
  EXPECT_EQ(analysis.samples().prompt(), "");
  EXPECT_EQ(analysis.samples().max_tokens(), 10'000'000u);
  EXPECT_THAT(analysis.samples().stop(), SizeIs(0));
  EXPECT_THAT(analysis.samples().prompt_ids(), SizeIs(0));
  analyst->AnalysisResult(analysis, 0, 0);
}

TEST_F(GenerateTest, PassesEveryOptionOn) {
  Train();
  const auto analyst = MakeAnalyst();
  v1::GenerateRequest request;
  request.set_experiment(experiment_);
  request.set_cell(Rows(experiment_)[0].cell());
  request.set_step(0);
  request.set_count(7);
  request.set_temperature(0);
  request.set_top_k(3);
  request.set_top_p(.5);
  request.set_seed(9);
  request.set_prompt("bé");
  request.set_max_tokens(3);
  request.add_stop("\n");
  request.add_stop("é");
  Call call(models_.get(), request);
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_NE(analysis.checkpoint_blob(), last_);
  EXPECT_EQ(analysis.samples().count(), 7u);
  EXPECT_EQ(analysis.samples().temperature(), 0);
  EXPECT_EQ(analysis.samples().top_k(), 3u);
  EXPECT_EQ(analysis.samples().top_p(), .5);
  EXPECT_EQ(analysis.samples().seed(), 9u);
  EXPECT_EQ(analysis.samples().prompt(), "bé");
  EXPECT_EQ(analysis.samples().max_tokens(), 3u);
  EXPECT_THAT(analysis.samples().stop(), ElementsAre("\n", "é"));
  analyst->AnalysisResult(analysis, 0, 0);
  ASSERT_TRUE(call.Wait().ok());
  EXPECT_EQ(call.messages().back().summary().step(), 0u);
}

TEST_F(GenerateTest, PassesPromptIdsOnAndTokenIdsBack) {
  Train();
  const auto analyst = MakeAnalyst();
  v1::GenerateRequest request = Request();
  for (const uint32_t id : {5u, 0u}) request.add_prompt_ids(id);
  Call call(models_.get(), request);
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_THAT(analysis.samples().prompt_ids(), ElementsAre(5, 0));
  EXPECT_EQ(analysis.samples().prompt(), "");
  worker::v1::Sample sample = SampleOf(0, "an", false);
  sample.set_ended(false);
  for (const uint32_t id : {3u, 4u, 1u}) sample.add_token_ids(id);
  sample.set_stop("n");
  analyst->AnalysisPart(analysis, {sample});
  analyst->AnalysisResult(analysis, 1, 0);
  ASSERT_TRUE(call.Wait().ok());
  EXPECT_THAT(call.messages()[0].sample().token_ids(), ElementsAre(3, 4, 1));
  EXPECT_EQ(call.messages()[0].sample().stop(), "n");
}

TEST_F(GenerateTest, NamesEveryOptionThatIsOutOfRange) {
  Train();
  struct Case {
    std::function<void(v1::GenerateRequest*)> change;
    std::string field, message;
  };
  const std::vector<Case> cases = {
      {[](auto* r) { r->set_max_tokens(0); }, "max_tokens",
       "max_tokens: 0 is out of range; expected 1 to 10,000,000"},
      {[](auto* r) { r->set_max_tokens(10'000'001); }, "max_tokens",
       "max_tokens: 10000001 is out of range; expected 1 to 10,000,000"},
      {[](auto* r) { r->add_stop(""); }, "stop[0]",
       "stop[0]: it has 0 bytes; expected 1 to 1,000 bytes of UTF-8"},
      {[](auto* r) {
         r->add_stop("a");
         r->add_stop(std::string(1001, 'a'));
       },
       "stop[1]", "stop[1]: it has 1001 bytes; expected 1 to 1,000 bytes of UTF-8"},
      {[](auto* r) {
         for (int i = 0; i < 17; ++i) r->add_stop("a");
       },
       "stop", "stop: it has 17 strings; expected at most 16"},
      {[](auto* r) {
         r->set_prompt("a");
         r->add_prompt_ids(0);
       },
       "prompt_ids", "prompt_ids: prompt and prompt_ids are both given; expected either of them"},
      {[](auto* r) {
         for (int i = 0; i < 8; ++i) r->add_prompt_ids(0);
       },
       "prompt_ids",
       "prompt_ids: it has 8 ids; expected at most 7, one less than the model's context"}};
  for (const Case& bad : cases) {
    v1::GenerateRequest request = Request();
    bad.change(&request);
    const grpc::Status status = Try(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad.message;
    EXPECT_EQ(status.error_message(), bad.message);
    EXPECT_EQ(FieldOf(status), bad.field);
  }
}

TEST_F(GenerateTest, LetsTheWorkerReadTheBlobsOfItsAnalysisWhileItRuns) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  const Analyze analysis = analyst->NextAnalysis();
  std::string bytes;
  EXPECT_TRUE(analyst->ReadBlob(analysis.id(), analysis.checkpoint_blob(), &bytes).ok());
  EXPECT_EQ(bytes, "last weights");
  EXPECT_TRUE(analyst->ReadBlob(analysis.id(), analysis.dataset_blob(), &bytes).ok());
  EXPECT_EQ(bytes, "anna\nbob\ncleo\ndora\n");
  EXPECT_EQ(analyst->ReadBlob(analysis.id(), first_, &bytes).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(analyst->WriteBlob(analysis.id(), last_, {"x"}).error_code(),
            grpc::StatusCode::NOT_FOUND)
      << "it may not write";
  analyst->AnalysisResult(analysis, 0, 0);
  ASSERT_TRUE(call.Wait().ok());
  EXPECT_EQ(analyst->ReadBlob(analysis.id(), last_, &bytes).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(GenerateTest, NamesTheFieldOfABadPrompt) {
  Train();
  const auto analyst = MakeAnalyst();
  for (const std::string field : {"prompt", "prompt_ids"}) {
    const std::string message = field + ": \"x\" is not in the data";
    Call call(models_.get(), Request());
    analyst->AnalysisFailed(analyst->NextAnalysis(), absl::InvalidArgumentError(message));
    const grpc::Status status = call.Wait();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), message);
    EXPECT_EQ(FieldOf(status), field);
  }
}

TEST_F(GenerateTest, SaysWhichCheckpointsThereAre) {
  grpc::Status status = Try(Request());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "NO_CHECKPOINT");
  Train();
  v1::GenerateRequest request = Request();
  request.set_step(5);
  status = Try(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no checkpoint of step 5; it has steps 0, 10"));
}

TEST_F(GenerateTest, NeedsATaskWithText) {
  const auto created = Create(SmallSpec());
  v1::GenerateRequest request;
  request.set_run(created.cells(0).run());
  const grpc::Status status = Try(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "TASK_HAS_NO_TEXT");
  EXPECT_THAT(status.error_message(), HasSubstr("has no text"));
}

TEST_F(GenerateTest, SaysWhichCellWasMeant) {
  v1::GenerateRequest request;
  request.set_experiment(experiment_);
  request.set_cell("s1");
  const grpc::Status status = Try(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("no cell \"s1\""), HasSubstr("did you mean s0?")));
}

TEST_F(GenerateTest, ListsTheWorkerForAnalysesWithItsRole) {
  const auto trainer = MakeWorker();
  trainer->NextRun();
  const auto analyst = MakeAnalyst();
  const std::vector<v1::Worker> workers = Workers();
  ASSERT_THAT(workers, SizeIs(2));
  EXPECT_EQ(workers[0].name(), "workers/cpu-analysis");
  EXPECT_EQ(workers[0].role(), v1::WorkerRole::analysis);
  EXPECT_EQ(workers[0].state(), v1::WorkerState::IDLE);
  EXPECT_EQ(workers[1].role(), v1::WorkerRole::train);
  EXPECT_EQ(workers[1].state(), v1::WorkerState::BUSY);
}

TEST_F(GenerateTest, MakesSamplesForAReportThatWaitsForThem) {
  Train();
  const auto analyst = MakeAnalyst();
  schedule::Analyses* analyses = &scheduler()->analyses();
  analysis::SamplesQuery query{
      Request().run().substr(std::string("runs/").size()), std::nullopt, {}};
  query.options.count = 2;
  absl::StatusOr<analysis::SampleSet> set;
  std::thread report(
      [&] { set = analysis::MakeSamples(&store(), analyses, query, [] { return false; }); });
  const Analyze analysis = analyst->NextAnalysis();
  analyst->AnalysisPart(analysis, {SampleOf(0, "anna", true), SampleOf(1, "anno", false)});
  analyst->AnalysisResult(analysis, 2, 1);
  report.join();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->step, 10u);
  EXPECT_EQ(set->samples.at(1).text, "anno");
  EXPECT_EQ(set->counts.distinct, 2u);
  EXPECT_EQ(set->counts.in_training_data, 1u);
  EXPECT_TRUE(absl::IsCancelled(
      analysis::MakeSamples(&store(), analyses, query, [] { return true; }).status()));
}

TEST_F(GenerateTest, DrawsFromLargeModelsOnAGpu) {
  const auto gpu =
      std::make_unique<FakeWorker>(worker_channel_, "cuda-0-analysis", 3, worker::v1::ANALYSIS);
  const auto cores = MakeAnalyst();
  Train();
  Call small(models_.get(), Request());
  cores->AnalysisResult(cores->NextAnalysis(), 3, 1);
  EXPECT_TRUE(small.Wait().ok());
  v1::ExperimentSpec spec = DocumentsSpec("words");
  for (const int step : {0, -1}) spec.mutable_base()->mutable_training()->add_checkpoints(step);
  spec.mutable_base()->mutable_model()->set_width(660);
  spec.mutable_base()->mutable_model()->set_layers(2);
  experiment_ = Create(spec).experiment().name();
  Train();
  Call large(models_.get(), Request());
  gpu->AnalysisResult(gpu->NextAnalysis(), 3, 1);
  EXPECT_TRUE(large.Wait().ok());
}

TEST_F(GenerateTest, WithdrawsTheAnalysisWhenTheClientLeaves) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  const Analyze analysis = analyst->NextAnalysis();
  call.Cancel();
  EXPECT_EQ(call.Wait().error_code(), grpc::StatusCode::CANCELLED);
  analyst->WaitForWithdrawal(analysis);
  analyst->AnalysisFailed(analysis, absl::CancelledError("withdrawn"));
  Call next(models_.get(), Request());
  analyst->AnalysisResult(analyst->NextAnalysis(), 0, 0);
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(GenerateTest, IsUnavailableWhenTheWorkerDies) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  analyst->NextAnalysis();
  analyst->Crash();
  scheduler()->Run([](schedule::Scheduler& inside) {
    inside.Exited({"cpu-analysis", true, "killed by SIGSEGV", true});
  });
  const grpc::Status status = call.Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("the worker for analyses"));
  Call next(models_.get(), Request());
  const auto successor = MakeAnalyst();
  successor->AnalysisResult(successor->NextAnalysis(), 0, 0);
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(GenerateTest, IsUnavailableWhenTheServerEnds) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  analyst->NextAnalysis();
  StopClients();
  EXPECT_EQ(call.Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GenerateTest, SaysNothingOfTheTrainingDataForAText) {
  Train();  // the run that was there before
  experiment_ = Create(SpecOf(R"(
    name: "text"
    base {
      task { text { dataset: "words" validation: 0.3 } }
      model { layers: 1 width: 8 heads: 2 context: 3 }
      training { steps: 10 batch: 2 checkpoints: [0, -1] }
    })"))
                    .experiment()
                    .name();
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_TRUE(analysis.spec().spec().task().has_text());
  analyst->AnalysisPart(analysis, {SampleOf(0, "a\nb", false)});
  analyst->AnalysisResult(analysis, 1, 0);
  ASSERT_TRUE(call.Wait().ok());
  EXPECT_EQ(call.messages()[0].sample().text(), "a\nb");
  EXPECT_FALSE(call.messages()[1].summary().has_in_training_data_share());
}

}  // namespace
}  // namespace ablate::service
