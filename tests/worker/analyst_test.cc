// The worker for analyses with a fake engine that draws samples: what it fetches, computes,
// reports, and how it is stopped.
#include <gmock/gmock.h>

#include "server/engine/data/documents.h"
#include "tests/worker/analyst_fixture.h"

namespace ablate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kText[] = "ab\nba\nabba\n";

// Its documents, a line each.
std::string TextOf(const engine::TokenizedDocuments& documents) {
  std::string text;
  for (size_t i = 0; i + 1 < documents.starts.size(); ++i) {
    for (size_t at = documents.starts[i]; at < documents.starts[i + 1]; ++at) {
      text += static_cast<char>(documents.alphabet[documents.tokens[at]]);
    }
    text += '\n';
  }
  return text;
}

class SamplesTest : public AnalystTest {
 protected:
  SamplesTest() {
    analysis_options_.analysis.generate =
        [this](const engine::RunConfig& config, absl::string_view checkpoint,
               const engine::SampleOptions& asked, const std::atomic<bool>& stop,
               const auto& on_samples) {
          return Generate(config, checkpoint, asked, stop, on_samples);
        };
  }
  // Before what the engine uses goes.
  ~SamplesTest() override { StopAnalyst(); }

  // An analysis of a documents run whose checkpoint is "weights".
  v1::ToWorker Analysis(const std::string& id, uint32_t count = 3) {
    v1::ToWorker message;
    v1::Analyze& analyze = *message.mutable_analyze();
    const v1::GrantedRun run = DocumentsRun(4, 10, AddBlob(kText));
    analyze.set_id(id);
    analyze.set_checkpoint_blob(AddBlob("weights"));
    analyze.set_dataset_blob(run.dataset_blob());
    *analyze.mutable_spec() = run.spec();
    analyze.mutable_samples()->set_count(count);
    analyze.mutable_samples()->set_top_p(1);
    analyze.mutable_samples()->set_prompt("a");
    return message;
  }

  // What the fake engine does; a test may change it before StartAnalyst.
  std::function<absl::Status(const std::atomic<bool>& stop)> compute_ = [](const auto&) {
    return absl::OkStatus();
  };
  // By the engine, on the analyst's thread.
  std::vector<std::string> seen_;
  std::vector<std::shared_ptr<const engine::TokenizedDocuments>> documents_;

 private:
  absl::StatusOr<engine::SampleCounts> Generate(
      const engine::RunConfig& config, absl::string_view checkpoint,
      const engine::SampleOptions& asked, const std::atomic<bool>& stop,
      const std::function<void(std::vector<engine::Sample>)>& on_samples) {
    documents_.push_back(std::get<engine::DocumentsTask>(config.task).documents);
    seen_ = {TextOf(*documents_.back()), std::string(checkpoint), asked.prompt};
    for (uint32_t i = 0; i < asked.count; ++i) on_samples({{i, "text", 5, true, i == 0}});
    if (absl::Status status = compute_(stop); !status.ok()) return status;
    return engine::SampleCounts{1, 1};
  }
};

TEST_F(SamplesTest, FetchesTheDataAndTheCheckpointAndReportsEverySample) {
  StartAnalyst();
  server_->Send(Analysis("one"));
  const std::vector<v1::FromWorker> answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(4));
  for (uint32_t i = 0; i < 3; ++i) {
    const v1::Sample& sample = answer[i].analysis_part().samples(0);
    EXPECT_EQ(sample.index(), i);
    EXPECT_EQ(sample.text(), "text");
    EXPECT_EQ(sample.tokens(), 5u);
    EXPECT_TRUE(sample.ended());
    EXPECT_EQ(sample.in_training_data(), i == 0);
  }
  EXPECT_EQ(answer[3].analysis_result().samples().distinct(), 1u);
  EXPECT_THAT(seen_, ElementsAre(kText, "weights", "a"));
}

TEST_F(SamplesTest, SaysThatItMakesAnalysesAndHoldsNothing) {
  StartAnalyst();
  const ServerState state =
      server_->WaitUntil([](const ServerState& s) { return !s.heartbeats.empty(); });
  EXPECT_EQ(state.hellos[0].role(), v1::ANALYSIS);
  EXPECT_THAT(state.hellos[0].held(), SizeIs(0));
}

TEST_F(SamplesTest, KeepsTheDataButReadsEachCheckpoint) {
  StartAnalyst();
  for (const char* id : {"one", "two"}) {
    server_->Send(Analysis(id));
    WaitForAnswer(id);
  }
  EXPECT_EQ(server_->state().reads, 3u) << "one data set, two checkpoints";
  ASSERT_THAT(documents_, SizeIs(2));
  EXPECT_EQ(documents_[0], documents_[1]) << "not a copy each";
}

TEST_F(SamplesTest, ReportsWhyAnAnalysisFailedAndGoesOn) {
  bool failed = false;
  compute_ = [&](const auto&) {
    if (std::exchange(failed, true)) return absl::OkStatus();
    return absl::FailedPreconditionError("not finite \xff");
  };
  StartAnalyst();
  server_->Send(Analysis("one"));
  const v1::AnalysisFailed failure = WaitForAnswer("one").back().analysis_failed();
  EXPECT_EQ(failure.code(), static_cast<uint32_t>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(failure.message(), "not finite \\xff");
  server_->Send(Analysis("two"));
  EXPECT_TRUE(WaitForAnswer("two").back().has_analysis_result());
}

TEST_F(SamplesTest, ABlobThatIsGoneIsAFailureOfThatAnalysis) {
  StartAnalyst();
  v1::ToWorker message = Analysis("one");
  message.mutable_analyze()->set_checkpoint_blob(std::string(64, '0'));
  server_->Send(message);
  const v1::AnalysisFailed failure = WaitForAnswer("one").back().analysis_failed();
  EXPECT_EQ(failure.code(), static_cast<uint32_t>(absl::StatusCode::kNotFound));
}

// Computes until it is stopped.
absl::Status UntilStopped(const std::atomic<bool>& stop) {
  while (!stop) std::this_thread::yield();
  return absl::CancelledError("stopped");
}

TEST_F(SamplesTest, LetsGoOfWhatIsCancelledAndOfWhatWaits) {
  compute_ = UntilStopped;
  StartAnalyst();
  server_->Send(Analysis("running"));
  server_->WaitUntil([](const ServerState& s) { return !s.analyses.empty(); });
  server_->Send(Analysis("waiting"));
  Cancel("waiting");
  Cancel("running");
  for (const char* id : {"running", "waiting"}) {
    const v1::AnalysisFailed failure = WaitForAnswer(id).back().analysis_failed();
    EXPECT_EQ(failure.code(), static_cast<uint32_t>(absl::StatusCode::kCancelled)) << id;
  }
}

TEST_F(SamplesTest, ForgetsWhatItWasAskedWhenTheStreamBreaks) {
  compute_ = UntilStopped;
  StartAnalyst();
  server_->Send(Analysis("one"));
  server_->WaitUntil([](const ServerState& s) { return !s.analyses.empty(); });
  server_->BreakStream();
  server_->WaitUntil([](const ServerState& s) { return s.hellos.size() == 2; });
  server_->Send(Analysis("two", 1));
  server_->WaitUntil(
      [](const ServerState& s) { return s.analyses.back().analysis_part().id() == "two"; });
}

TEST_F(SamplesTest, EndsWhenTheDeviceIsLostAfterSayingSo) {
  compute_ = [](const auto&) {
    return absl::UnavailableError("the device is lost: CUDA error: an illegal memory access");
  };
  StartAnalyst();
  server_->Send(Analysis("one"));
  EXPECT_THAT(WaitForAnswer("one").back().analysis_failed().message(), HasSubstr("illegal memory"));
  EXPECT_TRUE(absl::IsUnavailable(WaitForAnalystsEnd()));
}

TEST_F(SamplesTest, EndsWhenTheDeviceIsLostToWhatWasCancelled) {
  compute_ = [](const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    return absl::UnavailableError("the device is lost");
  };
  StartAnalyst();
  server_->Send(Analysis("one"));
  server_->WaitUntil([](const ServerState& s) { return !s.analyses.empty(); });
  Cancel("one");
  EXPECT_TRUE(absl::IsUnavailable(WaitForAnalystsEnd()));
}

TEST_F(SamplesTest, AnErrorOfTheLibraryEndsOnlyTheAnalysisThatMetIt) {
  bool failed = false;
  compute_ = [&](const auto&) {
    return std::exchange(failed, true) ? absl::OkStatus() : absl::InternalError("LibTorch: odd");
  };
  StartAnalyst();
  server_->Send(Analysis("one"));
  EXPECT_EQ(WaitForAnswer("one").back().analysis_failed().code(),
            static_cast<uint32_t>(absl::StatusCode::kInternal));
  server_->Send(Analysis("two"));
  EXPECT_TRUE(WaitForAnswer("two").back().has_analysis_result());
}

TEST_F(SamplesTest, LeavesWhenItIsDrainedWithoutWaitingForWhatRuns) {
  compute_ = UntilStopped;
  StartAnalyst();
  server_->Send(Analysis("one"));
  server_->WaitUntil([](const ServerState& s) { return !s.analyses.empty(); });
  server_->Drain();
  EXPECT_TRUE(WaitForAnalystsEnd().ok());
}

TEST_F(SamplesTest, NeverAttachesWhenItCanNotBePrepared) {
  analysis_options_.prepare_lane = [] { return absl::ResourceExhaustedError("no memory"); };
  StartAnalyst();
  EXPECT_TRUE(absl::IsResourceExhausted(WaitForAnalystsEnd()));
  EXPECT_THAT(server_->state().hellos, SizeIs(0));
}

}  // namespace
}  // namespace ablate::worker
