// Tests the analysis worker with a fake engine that computes in pieces: what it fetches, reports
// and saves, how it yields and resumes, and every way in which a computation ends without a result.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/safetensors.h"
#include "server/engine/core/data/documents.h"
#include "tests/worker/analyst_fixture.h"

namespace ablate::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kPieces = 4;

// The fake engine's behaviour. The analyst's thread uses it during a computation; the test's thread
// changes atomic members at any time, and the others before its request.
struct Engine {
  std::atomic<uint64_t> state_bytes{0};
  // Number of pieces of one analysis that may be made; the next one waits.
  std::atomic<int64_t> allowed{kPieces};
  std::atomic<int64_t> waits_at{-1};  // the piece that is waiting
  std::function<absl::Status(int64_t piece)> before_piece = [](int64_t) {
    return absl::OkStatus();
  };
  engine::AnalysisResult result;
  // Its arguments.
  engine::AnalysisRequest request;
  std::vector<std::string> restored;
  int64_t made = 0;  // pieces, by all analyses
};

class FakeAnalysis : public engine::Analysis {
 public:
  explicit FakeAnalysis(Engine* engine) : engine_(engine) {}

  int64_t pieces() const override { return kPieces; }
  int64_t made() const override { return made_; }
  absl::Status Advance(const std::atomic<bool>& stop) override {
    if (absl::Status status = engine_->before_piece(made_); !status.ok()) return status;
    while (!stop && made_ >= engine_->allowed) {
      engine_->waits_at = made_;
      std::this_thread::yield();
    }
    if (stop) return absl::CancelledError("stopped");
    ++made_;
    ++engine_->made;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Save() override { return absl::StrCat("made ", made_); }
  uint64_t state_bytes() const override { return engine_->state_bytes; }
  absl::Status Restore(absl::string_view state) override {
    engine_->restored.emplace_back(state);
    if (absl::ConsumePrefix(&state, "made ") && absl::SimpleAtoi(state, &made_)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("it is no state of this analysis");
  }
  absl::StatusOr<engine::AnalysisResult> Finish() override {
    EXPECT_EQ(made_, kPieces);
    return engine_->result;
  }

 private:
  Engine* const engine_;
  int64_t made_ = 0;
};

engine::AnalysisArray ArrayOf(const std::string& name, std::vector<std::string> axes,
                              std::vector<int64_t> shape, TensorType type) {
  engine::AnalysisArray array{name, std::move(axes), shape, type, ""};
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  const int64_t bytes = type == TensorType::kF32 ? 4 : 8;
  array.bytes.assign(static_cast<size_t>(elements * bytes), 'x');
  return array;
}

class ComputationTest : public AnalystTest {
 protected:
  ComputationTest() {
    analysis_options_.analysis.make =
        [this](
            engine::AnalysisRequest request) -> absl::StatusOr<std::unique_ptr<engine::Analysis>> {
      engine_.request = std::move(request);
      if (!refusal_.ok()) return refusal_;
      return std::make_unique<FakeAnalysis>(&engine_);
    };
    // Reports and saves nothing unless asked.
    analysis_options_.analysis.pace = {absl::InfiniteDuration(), absl::InfiniteDuration()};
    engine_.result.numbers = {{"rank", 2.5, std::nullopt}};
  }
  // Stops before the engine is destroyed.
  ~ComputationTest() override { StopAnalyst(); }

  // Requests a spectrum of a documents run whose checkpoint is "weights".
  v1::ToWorker Computation(const std::string& id) {
    v1::ToWorker message;
    message.mutable_analyze()->set_id(id);
    v1::Computation& asked = *message.mutable_analyze()->mutable_computation();
    asked.mutable_analysis()->mutable_spectrum()->set_site("embedding");
    asked.mutable_inputs()->set_tokens(100);
    asked.set_seed(7);
    AddSubject(&asked, "weights");
    return message;
  }
  void AddSubject(v1::Computation* asked, const std::string& weights) {
    const v1::GrantedRun run = DocumentsRun(4, 10, AddBlob(kText));
    v1::ComputationSubject& subject = *asked->add_subjects();
    *subject.mutable_spec() = run.spec();
    subject.set_checkpoint_blob(AddBlob(weights));
    subject.set_dataset_blob(run.dataset_blob());
  }
  // Starts "one" and lets it make `pieces` pieces.
  void BeginAndHoldAt(int64_t pieces) {
    engine_.allowed = pieces;
    StartAnalyst();
    server_->Send(Computation("one"));
    WaitForPiece(pieces);
  }
  // Starts "one" from a state.
  void BeginFrom(const std::string& state_blob) {
    StartAnalyst();
    v1::ToWorker message = Computation("one");
    message.mutable_analyze()->mutable_computation()->set_state_blob(state_blob);
    server_->Send(message);
  }
  // Starts "one", up to its second piece, and "samples" at the same time, which end once they are
  // cancelled or drawn_ is set.
  void BeginWithSamples() {
    analysis_options_.attach.hello.set_lanes(AnalysisLanes(1));
    analysis_options_.analysis.generate =
        [this](const auto&, const auto&, const auto&, const std::atomic<bool>& stop,
               const auto&) -> absl::StatusOr<engine::SampleCounts> {
      drawing_ = true;
      while (!stop && !drawn_) std::this_thread::yield();
      if (stop) return absl::CancelledError("stopped");
      return engine::SampleCounts{1, 1};
    };
    BeginAndHoldAt(2);
    server_->Send(Samples("samples"));
    while (!drawing_) std::this_thread::yield();
  }
  void AskToYield(const std::string& id) {
    v1::ToWorker message;
    message.mutable_yield_analysis()->set_id(id);
    server_->Send(message);
  }
  // Waits until a piece waits for permission.
  void WaitForPiece(int64_t piece) {
    while (engine_.waits_at != piece) std::this_thread::yield();
  }
  // Asks "one" to yield while it is held at a piece, and then lets it make the piece. The worker
  // has handled the request once it has handled a later message.
  void YieldDuringPiece(int64_t piece) {
    AskToYield("one");
    server_->Send(Computation("behind"));
    Cancel("behind");
    WaitForAnswer("behind");
    engine_.allowed = piece + 1;
  }
  v1::AnalysisSaved WaitForYielded(const std::string& id) {
    const ServerState state = server_->WaitUntil([&](const ServerState& s) {
      const auto messages = MessagesAbout(id, s);
      return !messages.empty() && messages.back().analysis_saved().yielded();
    });
    const auto messages = MessagesAbout(id, state);
    return messages.empty() ? v1::AnalysisSaved() : messages.back().analysis_saved();
  }
  // Expects that the lane is free and the worker works.
  void ExpectMakesTheNext() {
    engine_.allowed = kPieces;
    server_->Send(Computation("next"));
    EXPECT_TRUE(WaitForAnswer("next").back().has_analysis_result());
  }

  Engine engine_;
  std::atomic<bool> drawing_{false}, drawn_{false};  // samples
  absl::Status refusal_;                             // returned by the engine
};

TEST_F(ComputationTest, FetchesWhatItReadsAndMakesEveryPiece) {
  StartAnalyst();
  v1::ToWorker message = Computation("one");
  AddSubject(message.mutable_analyze()->mutable_computation(), "other weights");
  server_->Send(message);
  const auto answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(1)) << "only the result";
  EXPECT_TRUE(answer[0].analysis_result().has_computation());
  EXPECT_EQ(engine_.made, kPieces);
  const engine::AnalysisRequest& request = engine_.request;
  EXPECT_EQ(std::get<engine::SpectrumOptions>(request.options).site, "embedding");
  EXPECT_EQ(request.inputs.tokens, 100u);
  EXPECT_EQ(request.inputs.prompt, "");
  EXPECT_EQ(request.seed, 7u);
  ASSERT_THAT(request.subjects, SizeIs(2));
  EXPECT_EQ(request.subjects[0].checkpoint.view(), "weights");
  EXPECT_EQ(request.subjects[1].checkpoint.view(), "other weights");
  EXPECT_EQ(request.subjects[0].config.model.width, 8);
  const auto documents = [&](size_t i) {
    return std::get<engine::DocumentsTask>(request.subjects[i].config.task).documents;
  };
  ASSERT_NE(documents(0), nullptr);
  EXPECT_EQ(documents(0), documents(1)) << "one data set";
  EXPECT_EQ(server_->state().reads, 3u);
}

TEST_F(ComputationTest, ComputesOnTheCoresInFloat32WhateverTrained) {
  StartAnalyst();
  v1::ToWorker message = Computation("one");
  auto* training = message.mutable_analyze()
                       ->mutable_computation()
                       ->mutable_subjects(0)
                       ->mutable_spec()
                       ->mutable_spec()
                       ->mutable_training();
  training->set_device(ablate::v1::Device::cuda);
  training->set_precision(ablate::v1::Precision::bfloat16);
  server_->Send(message);
  EXPECT_TRUE(WaitForAnswer("one").back().has_analysis_result());
  ASSERT_THAT(engine_.request.subjects, SizeIs(1));
  EXPECT_EQ(engine_.request.subjects[0].config.device, engine::Device::kCpu);
  EXPECT_EQ(engine_.request.subjects[0].config.precision, engine::Precision::kFloat32);
}

TEST_F(ComputationTest, FetchesTheDataSetThatItReads) {
  StartAnalyst();
  v1::ToWorker message = Computation("one");
  v1::Computation& asked = *message.mutable_analyze()->mutable_computation();
  asked.mutable_inputs()->clear_tokens();
  asked.mutable_inputs()->set_documents(12);
  server_->Send(message);
  WaitForAnswer("one");
  EXPECT_EQ(engine_.request.inputs.documents, 12u);
  EXPECT_EQ(engine_.request.inputs.tokens, 0u);
  EXPECT_EQ(engine_.request.inputs.text, nullptr);

  message.mutable_analyze()->set_id("two");
  asked.set_dataset_blob(AddBlob("baa\n"));
  server_->Send(message);
  WaitForAnswer("two");
  ASSERT_NE(engine_.request.inputs.text, nullptr);
  EXPECT_EQ(*engine_.request.inputs.text, "baa\n");

  message.mutable_analyze()->set_id("gone");
  asked.set_dataset_blob(std::string(64, '0'));
  server_->Send(message);
  ExpectFailure("gone", absl::StatusCode::kNotFound, "inputs.dataset: ");
  ExpectMakesTheNext();
}

TEST_F(ComputationTest, ReportsNumbersAndNotesAndPublishesArrays) {
  engine_.result.numbers = {engine::NumberOf("rank", 2.5),
                            engine::UndefinedNumber("skew", engine::Undefined::kZeroVariance),
                            engine::NumberOf("mean", 1 / 0.)};
  engine_.result.arrays = {
      ArrayOf("b", {"block", "feature"}, {2, 3}, TensorType::kF64),
      ArrayOf("a", {"token"}, {5}, TensorType::kF32),
  };
  engine_.result.notes = {"only 3 tokens were there"};
  StartAnalyst();
  server_->Send(Computation("one"));
  const auto answer = WaitForAnswer("one");
  const ablate::v1::Analysis result = answer.back().analysis_result().computation().analysis();
  EXPECT_EQ(result.numbers_size(), 3);
  EXPECT_EQ(result.numbers().at("rank").value(), 2.5);
  EXPECT_EQ(result.numbers().at("skew").undefined(), ablate::v1::UndefinedNumber::ZERO_VARIANCE);
  EXPECT_EQ(result.numbers().at("mean").undefined(), ablate::v1::UndefinedNumber::NON_FINITE);
  EXPECT_THAT(result.notes(), ElementsAre("only 3 tokens were there"));
  const std::string file = server_->state().blobs[result.artifact()];
  EXPECT_EQ(Sha256Of(file), result.artifact());
  EXPECT_EQ(file.size(), result.artifact_bytes());
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(result.arrays_size(), 2);
  ASSERT_THAT(parsed->tensors, SizeIs(2));
  for (int i = 0; i < 2; ++i) {
    const auto& info = result.arrays(i);
    EXPECT_EQ(parsed->tensors[static_cast<size_t>(i)].name, info.name()) << "in this order";
    EXPECT_THAT(parsed->tensors[static_cast<size_t>(i)].shape,
                testing::ElementsAreArray(info.shape()));
  }
  EXPECT_EQ(result.arrays(0).name(), "b");
  EXPECT_THAT(result.arrays(0).axes(), ElementsAre("block", "feature"));
  EXPECT_EQ(result.arrays(0).type(), "F64");
  EXPECT_EQ(result.arrays(1).type(), "F32");
  EXPECT_EQ(parsed->metadata.at("axes.b"), "block,feature");
  EXPECT_EQ(parsed->metadata.at("axes.a"), "token");
}

TEST_F(ComputationTest, PublishesNothingWhereThereAreNoArrays) {
  StartAnalyst();
  server_->Send(Computation("one"));
  const auto result = WaitForAnswer("one").back().analysis_result().computation();
  EXPECT_EQ(result.analysis().artifact(), "");
  EXPECT_EQ(result.analysis().arrays_size(), 0);
  EXPECT_EQ(result.analysis().numbers().at("rank").value(), 2.5);
  EXPECT_THAT(server_->state().blobs, SizeIs(2)) << "what the test put there";
}

TEST_F(ComputationTest, SaysHowFarItIsAfterEachPieceThatIsDue) {
  analysis_options_.analysis.pace.say_every = absl::ZeroDuration();
  StartAnalyst();
  server_->Send(Computation("one"));
  const auto answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(4)) << "the last piece is the result";
  for (size_t i = 0; i < 3; ++i) {
    const v1::AnalysisSaved& saved = answer[i].analysis_saved();
    EXPECT_EQ(saved.progress(), static_cast<double>(i + 1) / 4);
    EXPECT_EQ(saved.state_blob(), "");
    EXPECT_FALSE(saved.yielded());
  }
  EXPECT_TRUE(answer[3].has_analysis_result());
}

TEST_F(ComputationTest, SavesItsStateWhenItIsDueAndThenNamesIt) {
  analysis_options_.analysis.pace.save_every = absl::Nanoseconds(1);
  // As if saving took no time; otherwise the next save would be due twenty times as long
  // afterwards.
  engine_.before_piece = [](int64_t) {
    std::this_thread::yield();
    return absl::OkStatus();
  };
  StartAnalyst();
  server_->Send(Computation("one"));
  const auto answer = WaitForAnswer("one");
  ASSERT_FALSE(answer.empty());
  ASSERT_TRUE(answer[0].has_analysis_saved());
  EXPECT_EQ(answer[0].analysis_saved().state_blob(), Sha256Of("made 1"));
  EXPECT_EQ(answer[0].analysis_saved().state_bytes(), 6u);
  EXPECT_EQ(answer[0].analysis_saved().progress(), .25);
  EXPECT_FALSE(answer[0].analysis_saved().yielded());
  EXPECT_EQ(server_->state().blobs[Sha256Of("made 1")], "made 1");
}

TEST_F(ComputationTest, YieldsAfterThePieceThatItIsAt) {
  BeginAndHoldAt(2);
  YieldDuringPiece(2);
  const v1::AnalysisSaved saved = WaitForYielded("one");
  EXPECT_EQ(saved.progress(), .75);
  EXPECT_EQ(saved.state_blob(), Sha256Of("made 3"));
  EXPECT_EQ(saved.state_bytes(), 6u);
  EXPECT_EQ(server_->state().blobs[Sha256Of("made 3")], "made 3");
  EXPECT_EQ(engine_.made, 3);
  ExpectMakesTheNext();
  EXPECT_THAT(MessagesAbout("one", server_->state()), SizeIs(1)) << "nothing more";
}

// Saving would take longer than it has computed.
TEST_F(ComputationTest, GoesOnWhenItIsAskedToYieldAndItsStateIsTooLargeToBeSavedSoSoon) {
  engine_.state_bytes = 1'000'000'000'000;
  analysis_options_.analysis.pace.save_every = absl::Nanoseconds(1);
  BeginAndHoldAt(2);
  YieldDuringPiece(2);
  WaitForPiece(3);
  engine_.allowed = kPieces;
  const auto answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(1)) << "nothing was saved";
  EXPECT_TRUE(answer[0].has_analysis_result());
}

TEST_F(ComputationTest, SamplesAreDrawnDuringIt) {
  analysis_options_.attach.hello.set_lanes(AnalysisLanes(1));
  analysis_options_.analysis.generate = [](const auto&, const auto&, const auto&, const auto&,
                                           const auto&) {
    return engine::SampleCounts{1, 1};
  };
  BeginAndHoldAt(2);
  server_->Send(Samples("samples"));
  EXPECT_TRUE(WaitForAnswer("samples").back().analysis_result().has_samples());
  EXPECT_EQ(engine_.made, 2) << "it is where it was";
  engine_.allowed = kPieces;
  EXPECT_TRUE(WaitForAnswer("one").back().has_analysis_result());
}

TEST_F(ComputationTest, GoesOnWhenSamplesAreCancelled) {
  BeginWithSamples();
  Cancel("samples");
  ExpectFailure("samples", absl::StatusCode::kCancelled, "withdrawn");
  engine_.allowed = kPieces;
  const auto answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(1));
  EXPECT_TRUE(answer[0].has_analysis_result());
  StopAnalyst();
}

TEST_F(ComputationTest, LeavesSamplesRunningWhenItIsCancelled) {
  BeginWithSamples();
  Cancel("one");
  ExpectFailure("one", absl::StatusCode::kCancelled, "withdrawn");
  drawn_ = true;
  EXPECT_TRUE(WaitForAnswer("samples").back().analysis_result().has_samples());
  StopAnalyst();
}

TEST_F(ComputationTest, EndsWhenItIsAskedToYieldInItsLastPiece) {
  BeginAndHoldAt(3);
  YieldDuringPiece(3);
  const auto answer = WaitForAnswer("one");
  ASSERT_THAT(answer, SizeIs(1));
  EXPECT_TRUE(answer[0].has_analysis_result());
}

TEST_F(ComputationTest, GoesOnFromTheStateThatItIsGiven) {
  BeginFrom(AddBlob("made 3"));
  EXPECT_TRUE(WaitForAnswer("one").back().has_analysis_result());
  EXPECT_THAT(engine_.restored, ElementsAre("made 3"));
  EXPECT_EQ(engine_.made, 1) << "what was left";
}

// As if a newer program divided it into other pieces.
TEST_F(ComputationTest, BeginsAnewWhereItsStateIsRefused) {
  BeginFrom(AddBlob("odd"));
  EXPECT_TRUE(WaitForAnswer("one").back().has_analysis_result());
  EXPECT_THAT(engine_.restored, ElementsAre("odd"));
  EXPECT_EQ(engine_.made, kPieces);
}

TEST_F(ComputationTest, FailsWhenItsStateOrItsCheckpointIsGone) {
  BeginFrom(std::string(64, '0'));
  ExpectFailure("one", absl::StatusCode::kNotFound);
  v1::ToWorker message = Computation("two");
  message.mutable_analyze()->mutable_computation()->mutable_subjects(0)->set_checkpoint_blob(
      std::string(64, '0'));
  server_->Send(message);
  ExpectFailure("two", absl::StatusCode::kNotFound);
  ExpectMakesTheNext();
}

TEST_F(ComputationTest, FailsWhenItIsAskedWhatItDoesNotKnow) {
  StartAnalyst();
  v1::ToWorker message = Computation("kind");
  ablate::v1::AnalysisKind& analysis =
      *message.mutable_analyze()->mutable_computation()->mutable_analysis();
  analysis.Clear();
  analysis.GetReflection()->MutableUnknownFields(&analysis)->AddLengthDelimited(999, "");
  server_->Send(message);
  ExpectFailure("kind", absl::StatusCode::kUnimplemented, "does not know the kind of analysis");

  message.mutable_analyze()->set_id("option");
  analysis.mutable_spectrum()->set_site("embedding");
  auto* spectrum = analysis.mutable_spectrum();
  spectrum->GetReflection()->MutableUnknownFields(spectrum)->AddVarint(999, 1);
  server_->Send(message);
  ExpectFailure("option", absl::StatusCode::kUnimplemented, "all options of spectrum");

  message.mutable_analyze()->set_id("enum");
  analysis.mutable_gradient_flow()->set_signal(static_cast<ablate::v1::GradientSignal::Value>(77));
  server_->Send(message);
  ExpectFailure("enum", absl::StatusCode::kInvalidArgument, "signal: 77 is unknown");

  message.mutable_analyze()->set_id("nothing");
  message.mutable_analyze()->clear_computation();
  server_->Send(message);
  ExpectFailure("nothing", absl::StatusCode::kUnimplemented, "does not know the analysis");
  ExpectMakesTheNext();
}

TEST_F(ComputationTest, FailsWhenTheEngineRefusesIt) {
  refusal_ = absl::InvalidArgumentError("the model has no such site");
  StartAnalyst();
  server_->Send(Computation("one"));
  ExpectFailure("one", absl::StatusCode::kInvalidArgument, "no such site");
}

TEST_F(ComputationTest, FailsWithAPieceOfIt) {
  bool failed = false;
  engine_.before_piece = [&failed](int64_t piece) {
    if (piece < 2 || std::exchange(failed, true)) return absl::OkStatus();
    return absl::FailedPreconditionError("not finite");
  };
  StartAnalyst();
  server_->Send(Computation("one"));
  ExpectFailure("one", absl::StatusCode::kFailedPrecondition, "not finite");
  ExpectMakesTheNext();
}

TEST_F(ComputationTest, LetsGoInTheMiddleOfAPieceWhenItIsCancelled) {
  BeginAndHoldAt(2);
  Cancel("one");
  ExpectFailure("one", absl::StatusCode::kCancelled);
  ExpectMakesTheNext();
  EXPECT_THAT(MessagesAbout("one", server_->state()), SizeIs(1));
}

TEST_F(ComputationTest, LetsGoWhenItIsCancelledAfterItWasAskedToYield) {
  BeginAndHoldAt(2);
  AskToYield("one");
  Cancel("one");
  ExpectFailure("one", absl::StatusCode::kCancelled);
  ExpectMakesTheNext();
}

TEST_F(ComputationTest, IsForgottenWhenTheStreamBreaks) {
  BeginAndHoldAt(2);
  server_->BreakStream();
  server_->WaitUntil([](const ServerState& s) { return s.hellos.size() == 2; });
  ExpectMakesTheNext();
  for (const v1::FromWorker& message : MessagesAbout("one", server_->state())) {
    EXPECT_FALSE(message.has_analysis_result());
  }
}

TEST_F(ComputationTest, ALostDeviceEndsTheWorkerAfterSayingSo) {
  engine_.before_piece = [](int64_t piece) {
    return piece < 1 ? absl::OkStatus() : absl::UnavailableError("the device is lost");
  };
  StartAnalyst();
  server_->Send(Computation("one"));
  ExpectFailure("one", absl::StatusCode::kUnavailable, "the device is lost");
  EXPECT_TRUE(absl::IsUnavailable(WaitForAnalystsEnd()));
}

TEST_F(ComputationTest, WaitsForRoomOnTheServersDiskWithItsStateAndItsArrays) {
  engine_.result.arrays = {ArrayOf("a", {"token"}, {5}, TensorType::kF64)};
  server_->Change([](ServerState& state) {
    state.write_errors = {8, 8, 8};  // RESOURCE_EXHAUSTED
  });
  BeginAndHoldAt(2);
  YieldDuringPiece(2);
  EXPECT_EQ(WaitForYielded("one").state_blob(), Sha256Of("made 3"));
  EXPECT_THAT(server_->state().write_errors, IsEmpty());

  server_->Change([](ServerState& state) { state.write_errors = {8, 8, 8}; });
  engine_.allowed = kPieces;
  v1::ToWorker message = Computation("two");
  message.mutable_analyze()->mutable_computation()->set_state_blob(Sha256Of("made 3"));
  server_->Send(message);
  const auto answer = WaitForAnswer("two");
  const std::string artifact = answer.back().analysis_result().computation().analysis().artifact();
  EXPECT_NE(server_->state().blobs[artifact], "");
  EXPECT_THAT(server_->state().write_errors, IsEmpty());
}

TEST_F(ComputationTest, LetsGoWhenItIsCancelledWhileItWaitsForRoom) {
  engine_.result.arrays = {ArrayOf("a", {"token"}, {5}, TensorType::kF64)};
  server_->Change([](ServerState& state) { state.write_errors.assign(100'000, 8); });
  StartAnalyst();
  server_->Send(Computation("one"));
  server_->WaitUntil([](const ServerState& s) { return s.write_errors.size() < 99'999; });
  Cancel("one");
  ExpectFailure("one", absl::StatusCode::kCancelled);
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  ExpectMakesTheNext();
}

TEST_F(ComputationTest, LeavesWhenItIsDrainedWithoutWaitingForThePiece) {
  BeginAndHoldAt(2);
  server_->Drain();
  EXPECT_TRUE(WaitForAnalystsEnd().ok());
}

TEST_F(ComputationTest, CountsItsTimeFromOneMessageToTheNext) {
  analysis_options_.analysis.pace.say_every = absl::ZeroDuration();
  engine_.allowed = 1;
  StartAnalyst();
  const absl::Duration begun = MonotonicNow();
  server_->Send(Computation("one"));
  WaitForPiece(1);
  engine_.allowed = kPieces;
  const auto answer = WaitForAnswer("one");
  uint64_t busy = 0;
  for (const v1::FromWorker& message : answer) {
    busy += message.analysis_saved().busy_us() + message.analysis_result().computation().busy_us();
  }
  EXPECT_GT(busy, 0u);
  EXPECT_LE(busy, static_cast<uint64_t>(absl::ToInt64Microseconds(MonotonicNow() - begun)));
}

}  // namespace
}  // namespace ablate::worker
