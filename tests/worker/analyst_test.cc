// Tests the analysis worker with a fake engine that draws samples: what it fetches, computes and
// reports, and how it is stopped.
#include <gmock/gmock.h>

#include "server/engine/core/data/documents.h"
#include "tests/worker/analyst_fixture.h"

namespace ablate::worker {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Returns the documents as text, one per line.
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
  // Stops before the members that the engine uses are destroyed.
  ~SamplesTest() override { StopAnalyst(); }

  // Starts "one", which reports its samples, and waits for that.
  void Begin() {
    StartAnalyst();
    server_->Send(Samples("one"));
    server_->WaitUntil([](const ServerState& s) { return !s.analyses.empty(); });
  }

  // The fake engine's behaviour; a test may change it before StartAnalyst.
  std::function<absl::Status(const std::atomic<bool>& stop)> compute_ = [](const auto&) {
    return absl::OkStatus();
  };
  // Written by the engine, on the analyst's thread.
  std::vector<std::string> seen_;
  engine::SampleOptions asked_;
  std::vector<engine::Sample> together_;  // drawn at once, if there are any
  engine::RunConfig config_;
  std::vector<std::shared_ptr<const engine::TokenizedDocuments>> documents_;

 private:
  absl::StatusOr<engine::SampleCounts> Generate(
      const engine::RunConfig& config, absl::string_view checkpoint,
      const engine::SampleOptions& asked, const std::atomic<bool>& stop,
      const std::function<void(std::vector<engine::Sample>)>& on_samples) {
    config_ = config;
    documents_.push_back(std::get<engine::DocumentsTask>(config.task).documents);
    seen_ = {TextOf(*documents_.back()), std::string(checkpoint), asked.prompt};
    asked_ = asked;
    for (uint32_t i = 0; i < asked.count && together_.empty(); ++i) {
      on_samples({{i, "text", 5, true, i == 0, {1, 2, 3, 4, i}, i == 1 ? "\n" : ""}});
    }
    if (!together_.empty()) on_samples(together_);
    if (absl::Status status = compute_(stop); !status.ok()) return status;
    return engine::SampleCounts{1, 1};
  }
};

TEST_F(SamplesTest, FetchesTheDataAndTheCheckpointAndReportsEverySample) {
  StartAnalyst();
  server_->Send(Samples("one"));
  const std::vector<v1::FromWorker> answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(4));
  for (uint32_t i = 0; i < 3; ++i) {
    const v1::Sample& sample = answer[i].analysis_part().samples(0);
    EXPECT_EQ(sample.index(), i);
    EXPECT_EQ(sample.text(), "text");
    EXPECT_EQ(sample.tokens(), 5u);
    EXPECT_TRUE(sample.ended());
    EXPECT_EQ(sample.in_training_data(), i == 0);
    EXPECT_THAT(sample.token_ids(), ElementsAre(1, 2, 3, 4, i));
    EXPECT_EQ(sample.stop(), i == 1 ? "\n" : "");
  }
  EXPECT_EQ(answer[3].analysis_result().samples().distinct(), 1u);
  EXPECT_THAT(seen_, ElementsAre(kText, "weights", "a"));
}

TEST_F(SamplesTest, PassesTheOptionsToTheEngine) {
  StartAnalyst();
  server_->Send(Samples("one"));
  WaitForAnswer("one");
  EXPECT_EQ(asked_.max_tokens, engine::kMaxDrawnTokens) << "a server that knows no limit";
  EXPECT_THAT(asked_.stop, SizeIs(0));
  v1::ToWorker message = Samples("two");
  v1::SamplesOptions& samples = *message.mutable_analyze()->mutable_samples();
  samples.set_max_tokens(7);
  samples.add_stop("\n\n");
  samples.add_stop("b");
  samples.clear_prompt();
  samples.add_prompt_ids(1);
  samples.add_prompt_ids(0);
  server_->Send(message);
  WaitForAnswer("two");
  EXPECT_EQ(asked_.max_tokens, 7u);
  EXPECT_THAT(asked_.stop, ElementsAre("\n\n", "b"));
  EXPECT_THAT(asked_.prompt_ids, ElementsAre(1, 0));
}

TEST_F(SamplesTest, SendsManyLongSamplesInSeveralMessages) {
  const std::vector<uint32_t> ids(8192, 50'000);
  for (uint32_t i = 0; i < 256; ++i) {
    together_.push_back({i, std::string(4 * 8192, 'a'), 8192, false, false, ids});
  }
  StartAnalyst();
  server_->Send(Samples("one"));
  const std::vector<v1::FromWorker> answer = WaitForAnswer("one");
  uint32_t samples = 0;
  for (const v1::FromWorker& message : answer) {
    EXPECT_LT(message.ByteSizeLong(), 2u << 20);
    for (const v1::Sample& sample : message.analysis_part().samples()) {
      EXPECT_EQ(sample.index(), samples++);
      EXPECT_EQ(sample.token_ids_size(), 8192);
    }
  }
  EXPECT_EQ(samples, 256u);
}

TEST_F(SamplesTest, DrawsOnTheCoresInFloat32WhateverTrained) {
  StartAnalyst();
  v1::ToWorker message = Samples("one");
  auto* training = message.mutable_analyze()->mutable_spec()->mutable_spec()->mutable_training();
  training->set_device(ablate::v1::Device::cuda);
  training->set_precision(ablate::v1::Precision::bfloat16);
  server_->Send(message);
  EXPECT_TRUE(WaitForAnswer("one").back().has_analysis_result());
  EXPECT_EQ(config_.device, engine::Device::kCpu);
  EXPECT_EQ(config_.precision, engine::Precision::kFloat32);
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
    server_->Send(Samples(id));
    WaitForAnswer(id);
  }
  EXPECT_EQ(server_->state().reads, 3u) << "one data set, two checkpoints";
  ASSERT_THAT(documents_, SizeIs(2));
  EXPECT_EQ(documents_[0], documents_[1]) << "not a copy each";
}

TEST_F(SamplesTest, ReportsWhyAnAnalysisFailedAndGoesOn) {
  std::vector<absl::Status> failures = {absl::InternalError("LibTorch: odd"),
                                        absl::FailedPreconditionError("not finite \xff")};
  compute_ = [&](const auto&) {
    if (failures.empty()) return absl::OkStatus();
    const absl::Status failure = failures.back();
    failures.pop_back();
    return failure;
  };
  StartAnalyst();
  server_->Send(Samples("one"));
  ExpectFailure("one", absl::StatusCode::kFailedPrecondition, "not finite \\xff");
  server_->Send(Samples("two"));
  ExpectFailure("two", absl::StatusCode::kInternal, "LibTorch: odd");
  server_->Send(Samples("three"));
  EXPECT_TRUE(WaitForAnswer("three").back().has_analysis_result());
}

TEST_F(SamplesTest, ABlobThatIsGoneIsAFailureOfThatAnalysis) {
  StartAnalyst();
  v1::ToWorker message = Samples("one");
  message.mutable_analyze()->set_checkpoint_blob(std::string(64, '0'));
  server_->Send(message);
  ExpectFailure("one", absl::StatusCode::kNotFound);
}

// Computes until it is stopped.
absl::Status UntilStopped(const std::atomic<bool>& stop) {
  while (!stop) std::this_thread::yield();
  return absl::CancelledError("stopped");
}

TEST_F(SamplesTest, LetsGoOfWhatIsCancelledAndOfWhatWaits) {
  compute_ = UntilStopped;
  Begin();
  server_->Send(Samples("waiting"));
  Cancel("waiting");
  Cancel("one");
  for (const char* id : {"one", "waiting"}) ExpectFailure(id, absl::StatusCode::kCancelled);
}

TEST_F(SamplesTest, ForgetsWhatItWasAskedWhenTheStreamBreaks) {
  compute_ = UntilStopped;
  Begin();
  server_->BreakStream();
  server_->WaitUntil([](const ServerState& s) { return s.hellos.size() == 2; });
  server_->Send(Samples("two"));
  server_->WaitUntil(
      [](const ServerState& s) { return s.analyses.back().analysis_part().id() == "two"; });
}

TEST_F(SamplesTest, EndsWhenTheDeviceIsLostAfterSayingSo) {
  compute_ = [](const auto&) {
    return absl::UnavailableError("the device is lost: CUDA error: an illegal memory access");
  };
  StartAnalyst();
  server_->Send(Samples("one"));
  ExpectFailure("one", absl::StatusCode::kUnavailable, "illegal memory");
  EXPECT_TRUE(absl::IsUnavailable(WaitForAnalystsEnd()));
}

TEST_F(SamplesTest, EndsWhenTheDeviceIsLostToWhatWasCancelled) {
  compute_ = [](const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    return absl::UnavailableError("the device is lost");
  };
  Begin();
  Cancel("one");
  EXPECT_TRUE(absl::IsUnavailable(WaitForAnalystsEnd()));
}

TEST_F(SamplesTest, LeavesWhenItIsDrainedWithoutWaitingForWhatRuns) {
  compute_ = UntilStopped;
  Begin();
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
