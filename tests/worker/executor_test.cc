// Tests one run from its grant to its end: the events, their order and their content.
#include <gmock/gmock.h>

#include <atomic>

#include "absl/time/clock.h"
#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::HasSubstr;

// gRPC's code numbers.
constexpr int kPermissionDenied = 7;
constexpr int kUnavailable = 14;

class ExecutorTest : public WorkerTest {};

int Count(const ServerState& state, uint32_t seed, v1::Event::KindCase kind) {
  int count = 0;
  for (const v1::Event& event : EventsOf(state, "run-" + std::to_string(seed))) {
    count += event.kind_case() == kind;
  }
  return count;
}

TEST_F(ExecutorTest, TrainsAGrantedRunToItsEnd) {
  Start();
  server_->Grant({RecallRun(7, 50)});
  const ServerState state = WaitForRun(7);
  const auto events = EventsOf(state, NameOf(7));
  ASSERT_GE(events.size(), 4u);
  EXPECT_TRUE(events.front().has_started());
  ASSERT_TRUE(events[events.size() - 2].has_checkpoint());
  ASSERT_TRUE(events.back().has_finished());
  EXPECT_FALSE(events.back().finished().diverged());
  EXPECT_EQ(events.back().finished().step(), 50u);
  ExpectWholeSeries(state, 7, 0, 50);
  EXPECT_EQ(Series(state, NameOf(7), "eval/loss").size(), 1u);
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].seq(), i + 1);
}

TEST_F(ExecutorTest, PublishesACheckpointBeforeItsEventAndAfterItsPoints) {
  Start();
  server_->Grant({RecallRun(1, 20)});
  const ServerState state = WaitForRun(1);
  uint32_t reported = 0;
  for (const v1::Event& event : EventsOf(state, NameOf(1))) {
    if (event.has_points()) reported = event.points().step();
    if (!event.has_checkpoint()) continue;
    EXPECT_EQ(event.checkpoint().step(), 20u);
    EXPECT_EQ(reported, 20u);
    const auto blob = state.blobs.find(event.checkpoint().blob());
    ASSERT_NE(blob, state.blobs.end());
    EXPECT_EQ(blob->second, "parameters of 1 at 20");
    EXPECT_EQ(event.checkpoint().bytes(), blob->second.size());
  }
  EXPECT_EQ(Count(state, 1, v1::Event::kCheckpoint), 1);
}

TEST_F(ExecutorTest, ReportsTheFirstPointAtOnce) {
  options.executor.flush_every = absl::Hours(1);
  trainers_.LimitTo(1, 2);
  Start();
  server_->Grant({RecallRun(1, 1000)});
  server_->WaitUntil(
      [](const ServerState& state) { return Has(state, NameOf(1), v1::Event::kPoints); });
  trainers_.Unlimit(1);
  EXPECT_EQ(Count(WaitForRun(1), 1, v1::Event::kPoints), 2) << "only the first and the last";
}

TEST_F(ExecutorTest, CountsLaneTimeAndTokensOnce) {
  Start();
  const absl::Duration begin = MonotonicNow();
  server_->Grant({RecallRun(1, 5000)});
  const ServerState state = WaitForRun(1);
  uint64_t busy_us = 0, tokens = 0;
  for (const v1::Event& event : EventsOf(state, NameOf(1))) {
    busy_us += event.points().busy_us();
    tokens += event.points().tokens();
  }
  EXPECT_GT(busy_us, 0u);
  EXPECT_EQ(tokens, 5000 * kFakeTokens);
  EXPECT_LE(absl::Microseconds(busy_us), MonotonicNow() - begin);
}

void ExpectStatesToCoverWhatWasReportedBefore(const ServerState& state, uint32_t seed) {
  uint32_t reported = 0;
  for (const v1::Event& event : EventsOf(state, "run-" + std::to_string(seed))) {
    if (event.has_points()) reported = event.points().step();
    if (!event.has_resume_state()) continue;
    EXPECT_EQ(event.resume_state().step(), reported);
    const std::string& blob = state.blobs.at(event.resume_state().blob());
    EXPECT_EQ(blob, FakeState(seed, reported));
    EXPECT_EQ(event.resume_state().bytes(), blob.size());
  }
}

TEST_F(ExecutorTest, SavesAStateThatCoversExactlyWhatWasReportedBefore) {
  options.executor.resume_every = absl::ZeroDuration();
  Start();
  for (uint32_t limit = 10; limit <= 50; limit += 10) {
    trainers_.LimitTo(3, limit);
    if (limit == 10) server_->Grant({RecallRun(3, 200)});
    server_->WaitUntil([limit](const ServerState& state) {
      const auto events = EventsOf(state, NameOf(3));
      return !events.empty() && events.back().resume_state().step() == limit;
    });
  }
  trainers_.Unlimit(3);
  const ServerState state = WaitForRun(3);
  ExpectStatesToCoverWhatWasReportedBefore(state, 3);
  EXPECT_GE(Count(state, 3, v1::Event::kResumeState), 5);
  ExpectWholeSeries(state, 3, 0, 200);
}

TEST_F(ExecutorTest, SavesItsStateWhenTheServerAsks) {
  trainers_.LimitTo(3, 10);
  Start();
  server_->Grant({RecallRun(3, 200)});
  trainers_.WaitUntilHeld(3);
  server_->Save("nobody");
  server_->Save(NameOf(3));
  server_->WaitUntil([](const ServerState& state) {
    const auto events = EventsOf(state, NameOf(3));
    return !events.empty() && events.back().resume_state().step() == 10;
  });
  trainers_.Unlimit(3);
  const ServerState state = WaitForRun(3);
  ExpectStatesToCoverWhatWasReportedBefore(state, 3);
  EXPECT_EQ(Count(state, 3, v1::Event::kResumeState), 1);
  ExpectWholeSeries(state, 3, 0, 200);
}

TEST_F(ExecutorTest, TrainsOnWhileAStateIsPublishedAndHoldsBackWhatFollowsIt) {
  options.executor.resume_every = absl::ZeroDuration();
  trainers_.LimitTo(3, 1);
  Start();
  server_->Change([](ServerState& state) { state.write_errors.assign(100'000, kUnavailable); });
  server_->Grant({RecallRun(3, 200)});
  server_->WaitUntil(
      [](const ServerState& state) { return Has(state, NameOf(3), v1::Event::kPoints); });
  trainers_.LimitTo(3, 100);
  trainers_.WaitUntilHeld(3);
  EXPECT_EQ(trainers_.StepOf(3), 100u);
  const ServerState before = server_->state();
  EXPECT_EQ(Count(before, 3, v1::Event::kResumeState), 0);
  EXPECT_EQ(EventsOf(before, NameOf(3)).back().points().step(), 1u);
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  trainers_.Unlimit(3);
  const ServerState state = WaitForRun(3);
  ExpectStatesToCoverWhatWasReportedBefore(state, 3);
  EXPECT_EQ(EventsOf(state, NameOf(3))[2].resume_state().step(), 1u);
  EXPECT_TRUE(EventsOf(state, NameOf(3)).back().has_finished());
  ExpectWholeSeries(state, 3, 0, 200);
}

TEST_F(ExecutorTest, WaitsForAStateThatHoldsBackItsPointsForTooLong) {
  options.executor.resume_every = absl::ZeroDuration();
  options.executor.max_hold = absl::ZeroDuration();
  trainers_.LimitTo(3, 100);
  Start();
  server_->Change([](ServerState& state) { state.write_errors.assign(1000, kUnavailable); });
  server_->Grant({RecallRun(3, 200)});
  // A lane that continued would reach its limit within a few attempts.
  server_->WaitUntil([](const ServerState& state) { return state.write_errors.size() <= 996; });
  EXPECT_LT(trainers_.StepOf(3), 100u);
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  trainers_.Unlimit(3);
  ExpectWholeSeries(WaitForRun(3), 3, 0, 200);
}

TEST_F(ExecutorTest, FailsARunWhoseStateIsRefusedByTheServerAfterItsPoints) {
  options.executor.resume_every = absl::ZeroDuration();
  trainers_.LimitTo(3, 20);
  Start();
  server_->Change([](ServerState& state) { state.write_errors = {kPermissionDenied}; });
  server_->Grant({RecallRun(3, 200)});
  const ServerState state = WaitForRun(3);
  EXPECT_TRUE(EventsOf(state, NameOf(3)).back().has_failed());
  EXPECT_EQ(Count(state, 3, v1::Event::kResumeState), 0);
  EXPECT_GE(Count(state, 3, v1::Event::kPoints), 1);
}

TEST_F(ExecutorTest, LeavesAStateThatIsUnderWayWhenTheRunIsWithdrawn) {
  options.executor.resume_every = absl::ZeroDuration();
  trainers_.LimitTo(3, 20);
  Start();
  server_->Change([](ServerState& state) { state.write_errors.assign(100'000, kUnavailable); });
  server_->Grant({RecallRun(3, 200)});
  trainers_.WaitUntilHeld(3);
  server_->Cancel(NameOf(3));
  trainers_.WaitUntilGone(3);
  EXPECT_EQ(Count(server_->state(), 3, v1::Event::kResumeState), 0);
}

TEST_F(ExecutorTest, TrainsTheNextRunWhileTheLastCheckpointIsUnderWay) {
  Start();
  server_->Change([](ServerState& state) { state.write_errors.assign(100'000, kUnavailable); });
  trainers_.LimitTo(2, 7);
  server_->Grant({RecallRun(1, 20), RecallRun(2, 20)});
  trainers_.WaitUntilHeld(2);
  EXPECT_EQ(Count(server_->state(), 1, v1::Event::kCheckpoint), 0);
  EXPECT_EQ(Count(server_->state(), 1, v1::Event::kFinished), 0) << "its checkpoint comes before";
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  const ServerState state = WaitForRun(1);
  EXPECT_EQ(Count(state, 1, v1::Event::kCheckpoint), 1);
  EXPECT_EQ(Count(state, 2, v1::Event::kFinished), 0);
  trainers_.Unlimit(2);
  WaitForRun(2);
}

TEST_F(ExecutorTest, CompletesOneRunOfALaneAtATime) {
  Start();
  server_->Change([](ServerState& state) { state.write_errors.assign(100'000, kUnavailable); });
  trainers_.LimitTo(3, 7);
  server_->Grant({RecallRun(1, 20), RecallRun(2, 20), RecallRun(3, 20)});
  server_->WaitUntil([](const ServerState& state) {
    return Has(state, NameOf(2), v1::Event::kPoints) && state.write_errors.size() <= 99'996;
  });
  EXPECT_EQ(trainers_.made(), 2u) << "the second waits for the completion of the first";
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  trainers_.WaitUntilHeld(3);
  trainers_.Unlimit(3);
  const ServerState state = WaitForRun(3);
  for (uint32_t seed : {1, 2, 3}) EXPECT_EQ(Count(state, seed, v1::Event::kFinished), 1);
}

TEST_F(ExecutorTest, FailsARunWhoseLastCheckpointIsRefusedWhileTheNextOneTrains) {
  Start();
  server_->Change([](ServerState& state) { state.write_errors = {kPermissionDenied}; });
  trainers_.LimitTo(2, 7);
  server_->Grant({RecallRun(1, 20), RecallRun(2, 20)});
  const ServerState state = WaitForRun(1);
  EXPECT_TRUE(EventsOf(state, NameOf(1)).back().has_failed());
  EXPECT_EQ(Count(state, 1, v1::Event::kFinished), 0);
  trainers_.Unlimit(2);
  EXPECT_TRUE(EventsOf(WaitForRun(2), NameOf(2)).back().has_finished());
}

TEST_F(ExecutorTest, LeavesWhatARunLeftWhenThatIsWithdrawn) {
  Start();
  server_->Change([](ServerState& state) { state.write_errors.assign(100'000, kUnavailable); });
  trainers_.LimitTo(2, 7);
  server_->Grant({RecallRun(1, 20), RecallRun(2, 20), RecallRun(3, 20)});
  trainers_.WaitUntilHeld(2);
  server_->Cancel(NameOf(1));
  trainers_.Unlimit(2);
  // The second may leave its lane only once the first's completion has ended.
  server_->WaitUntil(
      [](const ServerState& state) { return Has(state, NameOf(3), v1::Event::kStarted); });
  server_->Change([](ServerState& state) { state.write_errors.clear(); });
  const ServerState state = WaitForRun(3);
  WaitForRun(2);
  EXPECT_EQ(Count(state, 1, v1::Event::kCheckpoint), 0);
  EXPECT_EQ(Count(state, 1, v1::Event::kFinished), 0);
}

TEST_F(ExecutorTest, ContinuesFromTheStateThatTheServerPicked) {
  Start();
  v1::GrantedRun run = RecallRun(5, 40);
  run.set_resume_blob(AddBlob(FakeState(5, 30)));
  run.set_resume_step(30);
  server_->Grant({run});
  ExpectWholeSeries(WaitForRun(5), 5, 30, 40);
}

TEST_F(ExecutorTest, StartsFromTheCheckpointThatTheServerPicked) {
  Start();
  v1::GrantedRun run = RecallRun(5, 10);
  run.set_initial_blob(AddBlob("weights"));
  server_->Grant({run});
  ExpectWholeSeries(WaitForRun(5), 5, 0, 10);
  EXPECT_EQ(trainers_.StartOf(5), "weights");
}

// Its state has the parameters.
TEST_F(ExecutorTest, DoesNotReadTheCheckpointOfARunThatContinues) {
  Start();
  v1::GrantedRun run = RecallRun(5, 40);
  run.set_initial_blob("not stored");
  run.set_resume_blob(AddBlob(FakeState(5, 30)));
  run.set_resume_step(30);
  server_->Grant({run});
  ExpectWholeSeries(WaitForRun(5), 5, 30, 40);
  EXPECT_EQ(trainers_.StartOf(5), "");
}

TEST_F(ExecutorTest, FailsARunWhoseCheckpointDoesNotFit) {
  Start();
  v1::GrantedRun run = RecallRun(5, 10);
  run.set_initial_blob(AddBlob(kBadCheckpoint));
  server_->Grant({run});
  const auto events = EventsOf(WaitForRun(5), NameOf(5));
  ASSERT_TRUE(events.back().has_failed());
  EXPECT_EQ(events.back().failed().message(), "cannot begin with model_from: it has no tensor w");
}

TEST_F(ExecutorTest, GivesTheRunBackWhenItsStateIsRefused) {
  Start();
  v1::GrantedRun run = RecallRun(5, 40);
  run.set_resume_blob(AddBlob("something else"));
  run.set_resume_step(30);
  server_->Grant({run});
  const auto events = EventsOf(WaitForRun(5), NameOf(5));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events.back().released().state_refused(),
            "cannot resume from step 30: the state is another trainer's");
}

TEST_F(ExecutorTest, ReportsADivergedRunAsFinished) {
  trainers_.DivergeAt(2, 15);
  Start();
  server_->Grant({RecallRun(2, 100)});
  const ServerState state = WaitForRun(2);
  const v1::Event last = EventsOf(state, NameOf(2)).back();
  EXPECT_TRUE(last.finished().diverged());
  EXPECT_EQ(last.finished().step(), 15u);
  ExpectWholeSeries(state, 2, 0, 15);
}

TEST_F(ExecutorTest, ReportsAFailureAndGoesOnWithTheNextRun) {
  trainers_.FailAt(1, 10, absl::ResourceExhaustedError("needs 12 GiB"));
  Start();
  server_->Grant({RecallRun(1, 100), RecallRun(2, 10)});
  const ServerState state = WaitForRun(2);
  EXPECT_EQ(EventsOf(state, NameOf(1)).back().failed().message(), "needs 12 GiB");
  EXPECT_TRUE(EventsOf(state, NameOf(2)).back().has_finished());
}

TEST_F(ExecutorTest, FailsOnlyTheRunThatThrewWhileOthersTrain) {
  options.attach.hello.set_lanes(2);
  trainers_.FailAt(1, 10, absl::InternalError("LibTorch: no kernel for this"));
  trainers_.LimitTo(2, 5);
  Start();
  server_->Grant({RecallRun(2, 10)});
  trainers_.WaitUntilHeld(2);
  server_->Grant({RecallRun(1, 100)});
  EXPECT_EQ(EventsOf(WaitForRun(1), NameOf(1)).back().failed().message(),
            "LibTorch: no kernel for this");
  trainers_.Unlimit(2);
  EXPECT_TRUE(EventsOf(WaitForRun(2), NameOf(2)).back().has_finished());
}

TEST_F(ExecutorTest, MakesBrokenCharactersOfAMessageTransportable) {
  trainers_.FailAt(1, 0, absl::InvalidArgumentError("bad byte \xff here"));
  Start();
  server_->Grant({RecallRun(1, 100)});
  EXPECT_EQ(EventsOf(WaitForRun(1), NameOf(1)).back().failed().message(), "bad byte ? here");
}

TEST_F(ExecutorTest, EndsTheWorkerWhenTheDeviceIsLost) {
  trainers_.FailAt(1, 3, absl::UnavailableError("sticky error"));
  Start();
  server_->Grant({RecallRun(1, 100)});
  const absl::Status end = WaitForEnd();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end.message()), HasSubstr("sticky error"));
  EXPECT_EQ(Count(server_->state(), 1, v1::Event::kFailed), 0) << "the server decides whose fault";
}

TEST_F(ExecutorTest, RefusesWhatItDoesNotKnow) {
  using Change = void (*)(ablate::v1::BaseSpec*);
  const std::pair<Change, const char*> kCases[] = {
      {[](auto* spec) { spec->clear_task(); }, "task"},
      {[](auto* spec) {
         spec->mutable_model()->mutable_norm()->set_kind(ablate::v1::NormKind::Value(99));
       },
       "model.norm.kind: 99 is unknown; expected one of layer, rms, batch, l2, dyt, derf"},
      {[](auto* spec) {
         ablate::v1::ModelSpec* model = spec->mutable_model();
         model->GetReflection()->MutableUnknownFields(model)->AddVarint(99, 1);
       },
       "model: field number 99 is unknown"}};
  Start();
  uint32_t seed = 0;
  for (const auto& [change, message] : kCases) {
    v1::GrantedRun run = RecallRun(++seed, 10);
    change(run.mutable_spec()->mutable_spec());
    server_->Grant({run});
    EXPECT_THAT(EventsOf(WaitForRun(seed), NameOf(seed)).back().failed().message(),
                HasSubstr(message));
  }
  EXPECT_EQ(trainers_.made(), 0u);
}

TEST_F(ExecutorTest, TakesTheDefaultOfAFieldThatAnOlderServerDoesNotKnow) {
  Start();
  v1::GrantedRun run = RecallRun(1, 10);
  run.mutable_spec()->mutable_spec()->mutable_model()->mutable_norm()->clear_placement();
  server_->Grant({run});
  ExpectWholeSeries(WaitForRun(1), 1, 0, 10);
}

TEST_F(ExecutorTest, SendsItsLastStateBeforeItsEndWhenThatIsOfUse) {
  trainers_.DivergeAt(2, 15);
  Start();
  std::vector<v1::GrantedRun> runs = {RecallRun(1, 20), RecallRun(2, 20), RecallRun(3, 20)};
  runs[0].set_keep_state(true);
  runs[1].set_keep_state(true);
  server_->Grant(runs);
  const ServerState state = WaitForRun(3);
  const auto events = EventsOf(state, NameOf(1));
  ASSERT_GE(events.size(), 3u);
  EXPECT_TRUE(events[events.size() - 3].has_checkpoint());
  const v1::ResumeState& last = events[events.size() - 2].resume_state();
  EXPECT_EQ(last.step(), 20u);
  ASSERT_EQ(state.blobs.count(last.blob()), 1u);
  EXPECT_EQ(state.blobs.at(last.blob()), FakeState(1, 20));
  EXPECT_EQ(Count(state, 1, v1::Event::kResumeState), 1);
  EXPECT_EQ(Count(state, 2, v1::Event::kResumeState), 0) << "it diverged";
  EXPECT_EQ(Count(state, 3, v1::Event::kResumeState), 0) << "nobody asked";
}

TEST(SaveIntervalTest, GrowsWithTheCostOfAState) {
  const absl::Duration every = absl::Seconds(30);
  EXPECT_EQ(SaveInterval(every, absl::Milliseconds(10)), every);
  EXPECT_EQ(SaveInterval(every, absl::Seconds(4)), absl::Seconds(200));
  EXPECT_EQ(SaveInterval(every, absl::Hours(1)), absl::Minutes(10)) << "the server was away";
  EXPECT_EQ(SaveInterval(absl::Hours(2), absl::Seconds(4)), absl::Hours(2));
}

// A GPU whose memory the test sets; its runs need less than 1 GB.
class GpuMemoryTest : public WorkerTest {
 protected:
  GpuMemoryTest() {
    options.attach.hello.set_device_kind("cuda");
    options.attach.hello.set_lanes(2);
    options.memory = {[this] {
                        ++asked_;
                        asked_.notify_all();
                        return engine::DeviceMemory{free_, 80'000'000'000};
                      },
                      [] {}};
  }
  // Lanes begin in any order: the first run must be there before the second.
  void GrantTwo(uint32_t steps) {
    server_->Grant({RecallRun(1, 10)});
    trainers_.WaitUntilHeld(1);
    server_->Grant({RecallRun(2, steps)});
  }
  // Lets the run of this seed run out of memory at this step, after everything it did before.
  void RunOutAt(uint32_t seed, uint32_t step) {
    trainers_.FailAt(seed, step, absl::ResourceExhaustedError("out of memory: 2 GiB"));
  }
  // Starts two runs: the first is held after 5 steps, the second has no memory after 30.
  void StartTwo() {
    trainers_.LimitTo(1, 5);
    RunOutAt(2, 30);
    Start();
    GrantTwo(50);
    server_->WaitUntil([](const ServerState& state) {
      return Series(state, NameOf(2), "train/loss").size() == 30;
    });
    trainers_.WaitUntilGone(2);
  }
  void WaitForHeartbeat(uint32_t lanes) {
    server_->WaitUntil([lanes](const ServerState& state) {
      return !state.heartbeats.empty() && state.heartbeats.back().lanes() == lanes;
    });
  }

  std::atomic<uint64_t> free_ = 80'000'000'000;
  std::atomic<int> asked_ = 0;  // for the free memory
};

TEST_F(GpuMemoryTest, BeginsARunWhenItsMemoryIsFree) {
  trainers_.LimitTo(1, 5);
  trainers_.LimitTo(2, 5);
  free_ = 1000;
  Start();
  WaitForHeartbeat(2);
  GrantTwo(10);
  for (int asked = 0; (asked = asked_) < 2;) asked_.wait(asked);
  EXPECT_EQ(trainers_.made(), 1u) << "run 2 doesn't fit beside it";
  free_ = 80'000'000'000;
  trainers_.WaitUntilHeld(2);
  trainers_.Unlimit(1);
  trainers_.Unlimit(2);
  WaitForRun(1);
  WaitForRun(2);
}

TEST_F(GpuMemoryTest, ContinuesARunThatWasOutOfMemoryBesideAnother) {
  StartTwo();
  EXPECT_EQ(trainers_.made(), 2u);
  RunOutAt(2, UINT32_MAX);
  trainers_.Unlimit(1);
  const ServerState state = WaitForRun(2);
  EXPECT_TRUE(EventsOf(state, NameOf(2)).back().has_finished());
  EXPECT_EQ(trainers_.made(), 3u);
  ExpectWholeSeries(state, 2, 0, 50);
  EXPECT_EQ(Count(state, 2, v1::Event::kStarted), 1);
  WaitForRun(1);
}

TEST_F(GpuMemoryTest, ReportsAnEvaluationOnceThatIsMadeAgain) {
  trainers_.VisitAt(2, 30);
  StartTwo();
  RunOutAt(2, UINT32_MAX);
  trainers_.Unlimit(1);
  const ServerState state = WaitForRun(2);
  EXPECT_EQ(trainers_.made(), 3u);
  EXPECT_EQ(Series(state, NameOf(2), "eval/loss").size(), 2u) << "at steps 30 and 50";
  EXPECT_EQ(Count(state, 2, v1::Event::kCheckpoint), 2);
  WaitForRun(1);
}

TEST_F(GpuMemoryTest, SavesTheStateOfARunThatWaitsForMemoryWhenItDrains) {
  StartTwo();
  server_->Drain();
  const auto events = EventsOf(WaitForRun(2), NameOf(2));
  EXPECT_TRUE(events.back().has_released());
  const v1::Event& saved = events[events.size() - 2];
  ASSERT_TRUE(saved.has_resume_state());
  EXPECT_EQ(saved.resume_state().step(), 30u);
  EXPECT_EQ(server_->state().blobs[saved.resume_state().blob()], FakeState(2, 30));
}

TEST_F(GpuMemoryTest, FailsARunThatIsOutOfMemoryAlone) {
  RunOutAt(1, 5);
  Start();
  server_->Grant({RecallRun(1, 10)});
  const auto events = EventsOf(WaitForRun(1), NameOf(1));
  ASSERT_TRUE(events.back().has_failed());
  EXPECT_THAT(events.back().failed().message(),
              testing::MatchesRegex("out of memory: 2 GiB; the run needs about [0-9.]+ MB, and the "
                                    "GPU has 80 GB for all programs"));
}

TEST_F(GpuMemoryTest, ReportsItsLanesAtOnceAndWhenTheyChange) {
  options.measure_lanes = true;
  options.measure_every = absl::Milliseconds(1);
  server_->Change([](ServerState& state) { state.heartbeat_ms = 60'000; });
  Start();
  WaitForHeartbeat(1);
  server_->Change([](ServerState& state) { state.heartbeat_ms = 10; });
  server_->BreakStream();
  server_->WaitUntil(
      [](const ServerState& state) { return state.hellos.size() == 2 && state.attached; });
  // Short runs give it a second lane.
  for (uint32_t seed : {10, 11, 12}) {
    trainers_.LimitTo(seed, 1);
    server_->Grant({RecallRun(seed, 10)});
    trainers_.WaitUntilHeld(seed);
    absl::SleepFor(absl::Milliseconds(150));
    trainers_.Unlimit(seed);
    WaitForRun(seed);
  }
  WaitForHeartbeat(2);
  trainers_.LimitTo(1, 5);
  RunOutAt(2, 0);
  GrantTwo(10);
  WaitForHeartbeat(1);
  RunOutAt(2, UINT32_MAX);
  trainers_.Unlimit(1);
  EXPECT_TRUE(EventsOf(WaitForRun(2), NameOf(2)).back().has_finished());
}

}  // namespace
}  // namespace ablate::worker
