// Tests stored analyses over a real connection, with a scripted worker: from the request to the
// arrays, with cancels, crashes, restarts, deletes and other requests in between.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "tests/service/analysis_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using worker::v1::Analyze;

class AnalysesTest : public AnalysisTest {
 protected:
  // A number, one that is undefined, an array and a note.
  static v1::Analysis Result() {
    v1::Analysis result;
    (*result.mutable_numbers())["rank"].set_value(2.5);
    (*result.mutable_numbers())["skew"].set_undefined(v1::UndefinedNumber::ZERO_VARIANCE);
    v1::AnalysisArrayInfo& array = *result.add_arrays();
    array.set_name("spectrum");
    array.add_axes("feature");
    array.add_shape(8);
    array.set_type("F64");
    result.add_notes("only 3 tokens were there");
    return result;
  }
  std::unique_ptr<FakeWorker> MakeGpuAnalyst() {
    return std::make_unique<FakeWorker>(worker_channel_, "cuda-0-analysis", 1,
                                        worker::v1::ANALYSIS);
  }
  // Returns a request about a model that is analyzed on a GPU.
  v1::CreateAnalysisRequest OnLargeModel() {
    v1::ExperimentSpec spec = SmallSpec(1, "large");
    spec.mutable_base()->mutable_model()->set_width(2048);
    const std::string experiment = Create(spec).experiment().name();
    const auto worker = MakeWorker();
    TrainAll(worker.get(), 2);
    v1::CreateAnalysisRequest request = RequestOf("analysis { spectrum {} }");
    request.add_subjects()->set_run(Rows(experiment)[0].run());
    return request;
  }
  // Returns the next request that isn't of a withdrawn kind, which may have been sent just before.
  static v1::AnalysisKind NextOther(FakeWorker* analyst, v1::AnalysisKind::KindCase withdrawn) {
    Analyze next = analyst->NextAnalysis();
    if (next.computation().analysis().kind_case() == withdrawn) {
      analyst->WaitForWithdrawal(next);
      analyst->AnalysisFailed(next, absl::CancelledError("withdrawn"));
      next = analyst->NextAnalysis();
    }
    return next.computation().analysis();
  }
};

TEST_F(AnalysesTest, GivesTheWorkerEverythingThatIsAsked) {
  const auto analyst = MakeAnalyst();
  v1::CreateAnalysisRequest request = Request("loss_landscape { direction: unit dims: 2 }");
  request.set_seed(7);
  const std::string name = Ask(request).analysis().name();
  const Analyze analyze = analyst->NextAnalysis();
  const worker::v1::Computation& asked = analyze.computation();
  const v1::LossLandscapeOptions& options = asked.analysis().loss_landscape();
  EXPECT_EQ(options.direction(), v1::Direction::unit);
  EXPECT_EQ(options.dims(), 2u);
  EXPECT_EQ(options.directions(), 10u);
  EXPECT_EQ(options.radius(), .5) << "by the direction";
  EXPECT_EQ(options.points(), 21u) << "by dims";
  EXPECT_EQ(asked.inputs().tokens(), 5'000u);
  EXPECT_EQ(asked.seed(), 7u);
  EXPECT_EQ(asked.state_blob(), "");
  ASSERT_EQ(asked.subjects_size(), 1);
  EXPECT_EQ(asked.subjects(0).spec().spec().model().width(), 8u);
  EXPECT_EQ(asked.subjects(0).checkpoint_blob(),
            Sha256Hex(absl::StrCat("weights of ", run_.substr(5))));
  EXPECT_EQ(asked.subjects(0).dataset_blob(), "");
  std::string bytes;
  EXPECT_TRUE(analyst->ReadBlob(analyze.id(), asked.subjects(0).checkpoint_blob(), &bytes).ok());
  EXPECT_EQ(bytes, absl::StrCat("weights of ", run_.substr(5)));
  EXPECT_EQ(GetAnalysis(name).analysis().DebugString(), asked.analysis().DebugString());
}

TEST_F(AnalysesTest, StoresWhatComesOfIt) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  const Analyze analyze = analyst->NextAnalysis();
  const v1::Analysis running = WaitUntil(name, v1::AnalysisState::RUNNING);
  EXPECT_TRUE(running.has_start_time());
  EXPECT_FALSE(running.has_end_time());
  EXPECT_EQ(running.progress(), 0);
  const std::string arrays(3'000'000, 'a');
  analyst->ComputationResult(analyze, Result(), arrays, 1'500'000);
  const v1::Analysis done = WaitUntil(name, v1::AnalysisState::DONE);
  EXPECT_EQ(done.progress(), 1);
  EXPECT_EQ(done.numbers().at("rank").value(), 2.5);
  EXPECT_EQ(done.numbers().at("skew").undefined(), v1::UndefinedNumber::ZERO_VARIANCE);
  ASSERT_EQ(done.arrays_size(), 1);
  EXPECT_EQ(done.arrays(0).DebugString(), Result().arrays(0).DebugString());
  EXPECT_THAT(done.notes(), ElementsAre("only 3 tokens were there"));
  EXPECT_EQ(done.artifact(), Sha256Hex(arrays));
  EXPECT_EQ(done.artifact_bytes(), arrays.size());
  EXPECT_EQ(done.failure(), "");
  EXPECT_EQ(done.device_time().seconds(), 1);
  EXPECT_TRUE(done.has_end_time());
  EXPECT_EQ(done.subjects(0).run(), run_);
  std::string read;
  ASSERT_TRUE(TryReadArrays(name, &read).ok());
  EXPECT_TRUE(read == arrays);
  read.clear();
  ASSERT_TRUE(TryReadArrays(name, &read, 2'999'995).ok());
  EXPECT_EQ(read, "aaaaa");
  EXPECT_EQ(TryReadArrays(name, &read, 3'000'001).error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(AnalysesTest, SaysInADryRunThatLostArraysAreMadeAgain) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  analyst->ComputationResult(analyst->NextAnalysis(), Result(), "arrays");
  WaitUntil(name, v1::AnalysisState::DONE);
  v1::CreateAnalysisRequest request = Request("spectrum {}");
  request.set_validate_only(true);
  EXPECT_TRUE(Ask(request).reused());
  ASSERT_TRUE(std::filesystem::remove(folder() + "/blobs/" + Sha256Hex("arrays")));
  EXPECT_FALSE(Ask(request).reused());
}

TEST_F(AnalysesTest, AnswersAnEqualRequestWithWhatIsStored) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  EXPECT_EQ(Queue(), name) << "while it waits or runs";
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(name, v1::AnalysisState::DONE);
  const v1::CreateAnalysisResponse again = Ask(Request("spectrum {}"));
  EXPECT_TRUE(again.reused());
  EXPECT_EQ(again.analysis().numbers().at("rank").value(), 2.5);
  const std::string next = Queue("weights {}");
  EXPECT_TRUE(analyst->NextAnalysis().computation().analysis().has_weights())
      << "nothing was sent again";
  EXPECT_THAT(List(""), ElementsAre(next, name));
}

TEST_F(AnalysesTest, QueuesAgainWhatFailedOrWasCancelled) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  analyst->AnalysisFailed(analyst->NextAnalysis(), absl::FailedPreconditionError("too odd"));
  const v1::Analysis failed = WaitUntil(name, v1::AnalysisState::FAILED);
  EXPECT_EQ(failed.failure(), "too odd");
  EXPECT_EQ(Queue(), name);
  const Analyze second = analyst->NextAnalysis();
  EXPECT_EQ(GetAnalysis(name).failure(), "");
  EXPECT_EQ(CancelAnalysis(name).state(), v1::AnalysisState::CANCELLED);
  analyst->WaitForWithdrawal(second);
  analyst->AnalysisFailed(second, absl::CancelledError("withdrawn"));
  EXPECT_EQ(Queue(), name);
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, AFailureWithoutAReasonIsOneAllTheSame) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  analyst->AnalysisFailed(analyst->NextAnalysis(), absl::InternalError(""));
  EXPECT_THAT(WaitUntil(name, v1::AnalysisState::FAILED).failure(), HasSubstr("INTERNAL"));
}

TEST_F(AnalysesTest, FailsWhenItsArraysWereNotPublished) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  v1::Analysis result = Result();
  result.set_artifact(std::string(64, 'a'));
  analyst->ComputationResult(analyst->NextAnalysis(), result);
  EXPECT_THAT(WaitUntil(name, v1::AnalysisState::FAILED).failure(), HasSubstr("isn't published"));
}

TEST_F(AnalysesTest, GivesTheWorkerTheDataSetThatItReadsUntilItsEnd) {
  const std::string run = TrainOn("words", "ab\nba\nabc\n");
  const v1::Dataset other = Upload("other", "cab\n");
  const std::string name =
      Ask(RequestOn({run}, "spectrum {}", "dataset: 'other' documents: 3")).analysis().name();
  const auto analyst = MakeAnalyst();
  const Analyze analyze = analyst->NextAnalysis();
  EXPECT_EQ(analyze.computation().inputs().documents(), 3u);
  EXPECT_EQ(analyze.computation().dataset_blob(), other.sha256());
  DeleteDataset(other.name());
  std::string bytes;
  EXPECT_TRUE(analyst->ReadBlob(analyze.id(), other.sha256(), &bytes).ok());
  EXPECT_EQ(bytes, "cab\n");
  analyst->ComputationResult(analyze, Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, FailsWhereItsDataSetIsDeletedUntilOneOfTheSameBytesIsThere) {
  const std::string run = TrainOn("words", "ab\nba\nabc\n");
  const v1::Dataset other = Upload("other", "cab\n");
  v1::CreateAnalysisRequest request = RequestOn({run}, "spectrum {}", "dataset: 'other'");
  const std::string name = Ask(request).analysis().name();
  DeleteDataset(other.name());
  Restart();
  EXPECT_EQ(WaitUntil(name, v1::AnalysisState::FAILED).failure(),
            absl::StrCat("inputs.dataset: ", other.name(), " was deleted before it was read"));
  EXPECT_EQ(FieldOf(Try(request)), "inputs.dataset");
  Upload("again", "cab\n");
  request.mutable_inputs()->set_dataset("again");
  EXPECT_EQ(Ask(request).analysis().name(), name) << "by its bytes";
  const auto analyst = MakeAnalyst();
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, ListsTheAnalysesOfARunOrAnExperimentNewestFirst) {
  const std::string first = Queue("spectrum {}"), second = Queue("weights {}");
  v1::CreateAnalysisRequest request = Request("cka {}");
  request.add_subjects()->set_run(other_);
  const std::string both = Ask(request).analysis().name();
  const std::string none = Ask(RequestOf("analysis { norm_response {} }")).analysis().name();
  EXPECT_THAT(List(""), ElementsAre(none, both, second, first));
  EXPECT_THAT(List("", 1), ElementsAre(none, both, second, first)) << "page by page";
  EXPECT_THAT(List(run_), ElementsAre(both, second, first));
  EXPECT_THAT(List(other_), ElementsAre(both));
  EXPECT_THAT(List(experiment_, 2), ElementsAre(both, second, first));
}

TEST_F(AnalysesTest, AnalysesOfNoModelAreMadeToo) {
  const auto analyst = MakeAnalyst();
  const std::string name =
      Ask(RequestOf("analysis { norm_response { size: 3 } }")).analysis().name();
  const Analyze analyze = analyst->NextAnalysis();
  EXPECT_EQ(analyze.computation().subjects_size(), 0);
  EXPECT_FALSE(analyze.computation().inputs().has_tokens());
  analyst->ComputationResult(analyze, Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, HasNoArraysToReadBeforeTheEndOrIfItMadeNone) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  std::string read;
  const grpc::Status early = TryReadArrays(name, &read);
  EXPECT_EQ(early.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(early), "ANALYSIS_NOT_DONE");
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(name, v1::AnalysisState::DONE);
  EXPECT_EQ(TryReadArrays(name, &read).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AnalysesTest, CancelsOneThatWaits) {
  const std::string name = Queue();
  AnalysisWatch watch(analyses_.get(), name);
  watch.Until(v1::AnalysisState::QUEUED);
  EXPECT_EQ(CancelAnalysis(name).state(), v1::AnalysisState::CANCELLED);
  watch.Until(v1::AnalysisState::CANCELLED);
  EXPECT_TRUE(watch.End().ok());
  const std::string next = Queue("weights {}");
  const auto analyst = MakeAnalyst();
  EXPECT_TRUE(NextOther(analyst.get(), v1::AnalysisKind::kSpectrum).has_weights());
}

TEST_F(AnalysesTest, CancelsOneThatRunsAndTellsItsWorker) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  const Analyze analyze = analyst->NextAnalysis();
  analyst->AnalysisSaved(analyze, .5, "half");
  WaitForProgress(name, .5);
  const v1::Analysis cancelled = CancelAnalysis(name);
  EXPECT_EQ(cancelled.state(), v1::AnalysisState::CANCELLED);
  EXPECT_TRUE(cancelled.has_end_time());
  analyst->WaitForWithdrawal(analyze);
  analyst->ComputationResult(analyze, Result());  // sent already
  const std::string next = Queue("weights {}");
  analyst->NextAnalysis();
  WaitUntil(next, v1::AnalysisState::RUNNING);
  EXPECT_EQ(GetAnalysis(name).state(), v1::AnalysisState::CANCELLED);
}

TEST_F(AnalysesTest, ACancelAfterTheEndChangesNothing) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  const v1::Analysis done = WaitUntil(name, v1::AnalysisState::DONE);
  EXPECT_EQ(CancelAnalysis(name).DebugString(), done.DebugString());
}

TEST_F(AnalysesTest, ACancelNeedsTheWholeName) {
  const std::string name = Queue();
  const auto cancel = [this](const std::string& called) {
    return StatusOf(*analyses_, &v1::Analyses::Stub::CancelAnalysis,
                    Named<v1::CancelAnalysisRequest>(called));
  };
  EXPECT_FALSE(cancel(name.substr(0, name.size() - 3)).ok());
  EXPECT_EQ(GetAnalysis(name.substr(0, name.size() - 3)).name(), name) << "reading does not";
  EXPECT_EQ(cancel("analyses/abc").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(GetAnalysis(name).state(), v1::AnalysisState::QUEUED);
}

// Whatever the order in which the two reach the server: the last request is computed.
TEST_F(AnalysesTest, IsMadeWhenItIsAskedForAgainWhileItIsCancelled) {
  const auto analyst = MakeAnalyst();
  std::thread working([&] {  // until weights are requested
    Analyze analyze;
    while (!analyze.computation().analysis().has_weights()) {
      analyze = analyst->NextAnalysis();
      analyst->ComputationResult(analyze, Result());
    }
  });
  for (uint32_t seed = 0; seed < 20; ++seed) {
    v1::CreateAnalysisRequest request = Request("spectrum {}");
    request.set_seed(seed);
    const std::string name = Ask(request).analysis().name();
    std::thread cancelling([&] { CancelAnalysis(name); });
    Ask(request);
    cancelling.join();
    Ask(request);
    WaitUntil(name, v1::AnalysisState::DONE);
  }
  Queue("weights {}");
  working.join();
}

TEST_F(AnalysesTest, CountsAllTimeOfItsWorker) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  const Analyze analyze = analyst->NextAnalysis();
  analyst->AnalysisSaved(analyze, .1, "", false, 1'000'000);
  analyst->AnalysisSaved(analyze, .2, "a state", false, 2'000'000);
  analyst->AnalysisSaved(analyze, .3, "", false, 3'000'000);
  analyst->ComputationResult(analyze, Result(), "", 4'000'000);
  EXPECT_EQ(WaitUntil(name, v1::AnalysisState::DONE).device_time().seconds(), 10);
}

// A duration that is out of range once ended the server.
TEST_F(AnalysesTest, StaysReadableWhateverTimeItsWorkerSays) {
  constexpr int64_t kHundredYears = int64_t{36'525} * 24 * 3600;
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  const Analyze analyze = analyst->NextAnalysis();
  analyst->AnalysisSaved(analyze, .1, "a state", false, uint64_t{1} << 63);
  analyst->AnalysisSaved(analyze, .2, "another", false, UINT64_MAX);
  analyst->ComputationResult(analyze, Result(), "", INT64_MAX);
  EXPECT_EQ(WaitUntil(name, v1::AnalysisState::DONE).device_time().seconds(), kHundredYears);
}

TEST_F(AnalysesTest, GoesOnFromItsLastStateAfterACrash) {
  auto analyst = MakeAnalyst();
  const std::string name = Queue();
  const Analyze analyze = analyst->NextAnalysis();
  analyst->AnalysisSaved(analyze, .25, "first");
  const std::string state = analyst->AnalysisSaved(analyze, .5, "second");
  analyst->AnalysisSaved(analyze, .75);
  WaitForProgress(name, .75);
  Crash(analyst.get());
  analyst = MakeAnalyst();
  const Analyze again = analyst->NextAnalysis();
  EXPECT_EQ(again.computation().state_blob(), state);
  std::string bytes;
  EXPECT_TRUE(analyst->ReadBlob(again.id(), state, &bytes).ok());
  EXPECT_EQ(bytes, "second");
  EXPECT_EQ(analyst->ReadBlob(again.id(), Sha256Hex("first"), &bytes).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  analyst->ComputationResult(again, Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, FailsAfterThreeCrashesInARowWithTheLastWords) {
  const std::string name = Queue();
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(GetAnalysis(name).state(), v1::AnalysisState::FAILED);
    const auto analyst = MakeAnalyst();
    analyst->NextAnalysis();
    Crash(analyst.get(), absl::StrCat("killed by signal ", i));
  }
  EXPECT_THAT(WaitUntil(name, v1::AnalysisState::FAILED).failure(),
              HasSubstr("killed by signal 2"));
  const auto analyst = MakeAnalyst();
  const std::string next = Queue("weights {}");
  EXPECT_TRUE(analyst->NextAnalysis().computation().analysis().has_weights());
}

TEST_F(AnalysesTest, CrashesByWhatRanBesideItDoNotFailIt) {
  const std::string guilty = Queue();
  const std::string innocent =
      Queue("loss_landscape { dims: 2 directions: 50 points: 51 }");  // long
  std::set<std::string> ended;
  for (int i = 0; i < 3; ++i) {
    // Both are submitted again before there is a worker.
    const auto waiting = [&] {
      const std::vector<std::string> all = scheduler()->analyses().Computations();
      return std::count_if(all.begin(), all.end(),
                           [&](const std::string& request) { return ended.count(request) == 0; });
    };
    while (waiting() < 2) std::this_thread::yield();
    FakeWorker analyst(worker_channel_, "cpu-analysis", 3, worker::v1::ANALYSIS);
    const Analyze first = analyst.NextAnalysis();
    EXPECT_TRUE(first.computation().analysis().has_spectrum());
    ended.insert(first.id());
    if (i == 0) ended.insert(analyst.NextAnalysis().id());
    Crash(&analyst);
  }
  WaitUntil(guilty, v1::AnalysisState::FAILED);
  const auto analyst = MakeAnalyst();
  const Analyze again = analyst->NextAnalysis();
  ASSERT_TRUE(again.computation().analysis().has_loss_landscape());
  analyst->ComputationResult(again, Result());
  WaitUntil(innocent, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, CrashesBetweenWhichItGetsOnAreNotHeldAgainstIt) {
  const std::string name = Queue();
  for (int i = 1; i <= 5; ++i) {
    const auto analyst = MakeAnalyst();
    analyst->AnalysisSaved(analyst->NextAnalysis(), i / 10., absl::StrCat("state ", i));
    WaitForProgress(name, i / 10.);
    Crash(analyst.get());
  }
  const auto analyst = MakeAnalyst();
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, ALostDeviceIsOneFailureAndGetsNothingNew) {
  const std::string name = Queue();
  std::vector<std::unique_ptr<FakeWorker>> analysts;  // all stay attached
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(GetAnalysis(name).state(), v1::AnalysisState::FAILED);
    analysts.push_back(std::make_unique<FakeWorker>(worker_channel_, absl::StrCat("analyst ", i), 1,
                                                    worker::v1::ANALYSIS));
    analysts.back()->AnalysisFailed(analysts.back()->NextAnalysis(),
                                    absl::UnavailableError("the device is lost"));
  }
  EXPECT_THAT(WaitUntil(name, v1::AnalysisState::FAILED).failure(), HasSubstr("device is lost"));
}

TEST_F(AnalysesTest, IsMadeAgainWhenItsWorkerLeavesIt) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  analyst->AnalysisFailed(analyst->NextAnalysis(), absl::CancelledError("withdrawn"));
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, YieldsToAnotherAndGoesOnFromWhereItWas) {
  const auto analyst = MakeAnalyst();
  const std::string longer = Queue();
  const Analyze first = analyst->NextAnalysis();
  const std::string shorter = Queue("weights {}");
  analyst->WaitForYield(first);
  const std::string state = analyst->AnalysisSaved(first, .5, "half", true);
  const Analyze second = analyst->NextAnalysis();
  EXPECT_TRUE(second.computation().analysis().has_weights());
  const v1::Analysis waiting = WaitUntil(longer, v1::AnalysisState::QUEUED);
  EXPECT_EQ(waiting.progress(), .5);
  analyst->ComputationResult(second, Result());
  WaitUntil(shorter, v1::AnalysisState::DONE);
  const Analyze again = analyst->NextAnalysis();
  EXPECT_EQ(again.computation().state_blob(), state);
  const v1::Analysis running = WaitUntil(longer, v1::AnalysisState::RUNNING);
  EXPECT_EQ(running.start_time().seconds(), waiting.start_time().seconds()) << "the first";
  analyst->ComputationResult(again, Result());
  WaitUntil(longer, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, IsTakenUpByTheNextServer) {
  auto analyst = MakeAnalyst();
  const std::string running = Queue();
  const std::string state = analyst->AnalysisSaved(analyst->NextAnalysis(), .5, "half");
  WaitForProgress(running, .5);
  const std::string queued = Queue("hessian {}");  // which takes longer
  analyst.reset();
  Restart();
  EXPECT_EQ(GetAnalysis(running).progress(), .5);
  analyst = MakeAnalyst();
  const Analyze first = analyst->NextAnalysis();
  EXPECT_EQ(first.computation().state_blob(), state);
  std::string bytes;
  EXPECT_TRUE(analyst->ReadBlob(first.id(), state, &bytes).ok());
  EXPECT_EQ(bytes, "half");
  analyst->ComputationResult(first, Result(), "arrays");
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  WaitUntil(running, v1::AnalysisState::DONE);
  WaitUntil(queued, v1::AnalysisState::DONE);
  Restart();
  std::string read;
  EXPECT_TRUE(TryReadArrays(running, &read).ok());
  EXPECT_EQ(read, "arrays");
}

TEST_F(AnalysesTest, OfALargeModelContinuesOnTheDeviceThatSavedItsStateAfterARestart) {
  const std::string name = Ask(OnLargeModel()).analysis().name();
  auto cores = MakeAnalyst();
  const std::string state = cores->AnalysisSaved(cores->NextAnalysis(), .5, "half");
  WaitForProgress(name, .5);
  cores.reset();
  Restart();
  const auto gpu = MakeGpuAnalyst();
  cores = MakeAnalyst();
  const Analyze again = cores->NextAnalysis();
  EXPECT_EQ(again.computation().state_blob(), state);
  cores->ComputationResult(again, Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, HasNoProgressAfterItBeganAgainOnTheCores) {
  auto gpu = MakeGpuAnalyst();
  const std::string name = Ask(OnLargeModel()).analysis().name();
  Analyze analyze = gpu->NextAnalysis();
  gpu->AnalysisSaved(analyze, .5, "half");
  gpu->AnalysisSaved(analyze, .75);
  WaitForProgress(name, .75);
  const std::string id = name.substr(std::string("analyses/").size());
  EXPECT_EQ(store().GetAnalysis(id)->state_on_gpu, true);
  gpu->AnalysisFailed(analyze, absl::ResourceExhaustedError("out of memory"));
  EXPECT_EQ(WaitUntil(name, v1::AnalysisState::QUEUED).progress(), 0);
  EXPECT_EQ(GetAnalysis(name).progress(), 0);
  gpu.reset();
  Restart();
  EXPECT_EQ(GetAnalysis(name).progress(), 0);
  const auto cores = MakeAnalyst();
  analyze = cores->NextAnalysis();
  EXPECT_EQ(analyze.computation().state_blob(), "");
  cores->ComputationResult(analyze, Result());
  WaitUntil(name, v1::AnalysisState::DONE);
}

// Another worker's upload checks the pinned blobs.
TEST_F(AnalysesTest, KeepsItsArraysWhileTheyAreStored) {
  const auto analyst = MakeAnalyst();
  const auto trainer = MakeWorker();
  Create(SmallSpec(1, "more", 20));
  const FakeWorker::Leased run = trainer->NextRun();
  trainer->Started(run);
  for (int i = 0; i < 10; ++i) {
    v1::CreateAnalysisRequest request = Request("spectrum {}");
    request.set_seed(static_cast<uint32_t>(i));
    const std::string name = Ask(request).analysis().name();
    analyst->ComputationResult(analyst->NextAnalysis(), Result(), absl::StrCat("arrays ", i));
    trainer->State(run, 1 + static_cast<uint32_t>(i), absl::StrCat("state ", i));
    WaitUntil(name, v1::AnalysisState::DONE);
    std::string read;
    EXPECT_TRUE(TryReadArrays(name, &read).ok());
  }
}

TEST_F(AnalysesTest, EndsWithTheExperimentThatItIsOf) {
  const auto analyst = MakeAnalyst();
  const std::string running = Queue();
  const Analyze analyze = analyst->NextAnalysis();
  const std::string waiting = Queue("weights {}");
  AnalysisWatch watch(analyses_.get(), running), other(analyses_.get(), waiting);
  watch.Until(v1::AnalysisState::RUNNING);
  other.Until(v1::AnalysisState::QUEUED);
  ASSERT_TRUE(TryDelete(experiment_).ok());
  EXPECT_EQ(other.End().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(watch.End().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(List(""), SizeIs(0));
  analyst->AnalysisSaved(analyze, .5);
  analyst->WaitForWithdrawal(analyze);
  analyst->AnalysisFailed(analyze, absl::CancelledError("withdrawn"));
  const std::string next = Ask(RequestOf("analysis { norm_response {} }")).analysis().name();
  EXPECT_TRUE(NextOther(analyst.get(), v1::AnalysisKind::kWeights).has_norm_response());
}

TEST_F(AnalysesTest, AWatchEndsWithWhatItWatches) {
  const auto analyst = MakeAnalyst();
  const std::string name = Queue();
  AnalysisWatch watch(analyses_.get(), name);
  watch.Until(v1::AnalysisState::RUNNING);
  analyst->ComputationResult(analyst->NextAnalysis(), Result());
  std::vector<v1::Analysis> told;
  EXPECT_TRUE(watch.End(&told).ok());
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().state(), v1::AnalysisState::DONE);
  told.clear();
  EXPECT_TRUE(AnalysisWatch(analyses_.get(), name).End(&told).ok()) << "it had ended";
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].state(), v1::AnalysisState::DONE);
}

TEST_F(AnalysesTest, AWatchEndsWithTheServer) {
  const std::string name = Queue();
  AnalysisWatch watch(analyses_.get(), name);
  watch.Until(v1::AnalysisState::QUEUED);
  StopClients();
  EXPECT_EQ(watch.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace ablate::service
