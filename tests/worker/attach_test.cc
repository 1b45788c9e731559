// Tests the worker's connection to its server: reconnection, repetition, credit, heartbeats, lost
// leases.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <optional>

#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class AttachTest : public WorkerTest {
 protected:
  // Started already uses up the credit, until it is acknowledged.
  void StartARunWithoutCredit() {
    server_->Change([](ServerState& state) {
      state.hold_acks = true;
      state.credit_bytes = 1;
    });
    Start();
    server_->Grant({RecallRun(1, 100)});
  }
};

std::vector<std::string> Stepping(const v1::Heartbeat& heartbeat) {
  std::vector<std::string> runs;
  for (const v1::LeaseProgress& lease : heartbeat.leases()) runs.push_back(lease.lease());
  return runs;
}

TEST_F(AttachTest, SaysWhoItIsFirst) {
  Start();
  const ServerState state =
      server_->WaitUntil([](const ServerState& s) { return !s.heartbeats.empty(); });
  ASSERT_THAT(state.hellos, SizeIs(1));
  EXPECT_EQ(state.hellos[0].worker(), "cpu-train");
  EXPECT_EQ(state.hellos[0].incarnation(), "first");
  EXPECT_EQ(state.hellos[0].lanes(), 1u);
  EXPECT_THAT(state.hellos[0].held(), IsEmpty());
}

TEST_F(AttachTest, WaitsForAServerThatIsNotThereYet) {
  server_->Stop();
  Start();
  server_->Start();
  server_->Grant({RecallRun(1, 10)});
  ExpectWholeSeries(WaitForRun(1), 1, 0, 10);
}

TEST_F(AttachTest, SendsAgainWhatABrokenStreamLeftUnacknowledged) {
  server_->Change([](ServerState& state) { state.hold_acks = true; });
  trainers_.LimitTo(1, 100);
  Start();
  server_->Grant({RecallRun(1, 300)});
  server_->WaitUntil(
      [](const ServerState& state) { return Series(state, NameOf(1), "train/loss").size() >= 30; });
  server_->BreakStream();
  const ServerState again =
      server_->WaitUntil([](const ServerState& state) { return state.hellos.size() == 2; });
  ASSERT_THAT(again.hellos[1].held(), SizeIs(1));
  EXPECT_EQ(again.hellos[1].held(0).lease(), NameOf(1));
  EXPECT_EQ(again.hellos[1].held(0).first_unacked(), 1u) << "nothing was acknowledged";
  server_->ReleaseAcks();
  trainers_.Unlimit(1);
  const ServerState state = WaitForRun(1);
  ExpectWholeSeries(state, 1, 0, 300);
  EXPECT_EQ(state.gaps, 0u);
}

TEST_F(AttachTest, KeepsTrainingWhileTheServerRestarts) {
  trainers_.LimitTo(1, 20);
  Start();
  server_->Grant({RecallRun(1, 100)});
  trainers_.WaitUntilHeld(1);
  server_->Stop();
  trainers_.LimitTo(1, 60);
  trainers_.WaitUntilHeld(1);
  EXPECT_EQ(trainers_.StepOf(1), 60u);
  server_->Start();
  trainers_.Unlimit(1);
  const ServerState state = WaitForRun(1);
  ExpectWholeSeries(state, 1, 0, 100);
  EXPECT_TRUE(EventsOf(state, NameOf(1)).back().has_finished());
  EXPECT_EQ(state.gaps, 0u);
}

TEST_F(AttachTest, SurvivesManyBreaksWithoutLosingOrRepeatingAnything) {
  options.executor.resume_every = absl::ZeroDuration();
  options.attach.hello.set_lanes(2);
  trainers_.LimitTo(1, 0);
  trainers_.LimitTo(2, 0);
  Start();
  server_->Grant({RecallRun(1, 400)});
  server_->Grant({RecallRun(2, 400)});
  for (uint32_t step = 20; step <= 380; step += 20) {
    trainers_.LimitTo(1, step);
    trainers_.LimitTo(2, step);
    trainers_.WaitUntilHeld(1 + step / 20 % 2);
    server_->BreakStream();
  }
  trainers_.Unlimit(1);
  trainers_.Unlimit(2);
  WaitForRun(1);
  const ServerState state = WaitForRun(2);
  ExpectWholeSeries(state, 1, 0, 400);
  ExpectWholeSeries(state, 2, 0, 400);
  EXPECT_EQ(state.gaps, 0u);
}

TEST_F(AttachTest, PausesWithoutCreditUntilSomethingIsAcknowledged) {
  StartARunWithoutCredit();
  // No step is made, however long the worker runs.
  server_->WaitUntil([](const ServerState& state) {
    return Has(state, NameOf(1), v1::Event::kStarted) && state.heartbeats.size() >= 10;
  });
  EXPECT_EQ(trainers_.StepOf(1), 0u);
  server_->ReleaseAcks();
  ExpectWholeSeries(WaitForRun(1), 1, 0, 100);
}

TEST_F(AttachTest, APauseForCreditIsNotTimeWithoutProgress) {
  StartARunWithoutCredit();
  const auto reported = [](const ServerState& state) {
    return !state.heartbeats.empty() && !Stepping(state.heartbeats.back()).empty();
  };
  size_t first = 0;
  server_->WaitUntil([&](const ServerState& state) {
    first = state.heartbeats.size();
    return reported(state);
  });
  const ServerState state =
      server_->WaitUntil([&](const ServerState& s) { return s.heartbeats.size() >= first + 10; });
  EXPECT_LT(state.heartbeats.back().leases(0).since_progress_ms(), 60u);
  server_->ReleaseAcks();
}

TEST_F(AttachTest, HeartbeatsSayWhoUsesTheDeviceIfThatIsKnown) {
  const auto known = std::make_shared<std::atomic<bool>>(true);
  options.device_use = [known]() -> std::optional<v1::DeviceUse> {
    v1::DeviceUse use;
    use.set_utilization(62);
    return *known ? std::optional(use) : std::nullopt;
  };
  Start();
  const ServerState state =
      server_->WaitUntil([](const ServerState& s) { return !s.heartbeats.empty(); });
  EXPECT_EQ(state.heartbeats[0].device_use().utilization(), 62u);
  *known = false;
  server_->WaitUntil([](const ServerState& s) { return !s.heartbeats.back().has_device_use(); });
}

TEST_F(AttachTest, HeartbeatsNameTheRunsOnLanesAndTheirSteps) {
  trainers_.LimitTo(1, 25);
  Start();
  server_->Grant({RecallRun(1, 100), RecallRun(2, 100)});
  trainers_.WaitUntilHeld(1);
  const ServerState state = server_->WaitUntil([](const ServerState& s) {
    if (s.heartbeats.empty() || s.heartbeats.back().leases().empty()) return false;
    const v1::LeaseProgress& run = s.heartbeats.back().leases(0);
    return run.step() > 0 && run.since_progress_ms() > 0;
  });
  EXPECT_THAT(Stepping(state.heartbeats.back()), ElementsAre(NameOf(1)));
  EXPECT_LE(state.heartbeats.back().leases(0).step(), 25u);
  trainers_.Unlimit(1);
  WaitForRun(2);
}

TEST_F(AttachTest, ACancelledRunEndsWithinAStepAndIsNeverMentionedAgain) {
  trainers_.LimitTo(1, 5);
  Start();
  server_->Grant({RecallRun(1, 100), RecallRun(2, 10)});
  trainers_.WaitUntilHeld(1);
  server_->Cancel(NameOf(1));
  const ServerState state = WaitForRun(2);
  trainers_.WaitUntilGone(1);
  EXPECT_LE(trainers_.StepOf(1), 5u);
  for (const v1::Event& event : EventsOf(state, NameOf(1))) {
    EXPECT_TRUE(event.has_started() || event.has_points());
  }
}

TEST_F(AttachTest, ACancelledRunThatWaitsForALaneIsNeverBegun) {
  trainers_.LimitTo(1, 5);
  Start();
  server_->Grant({RecallRun(1, 10), RecallRun(2, 10), RecallRun(3, 10)});
  trainers_.WaitUntilHeld(1);
  server_->Cancel(NameOf(2));
  // Handled after the first cancel: the lane is free only when run 2 is gone.
  server_->Cancel(NameOf(1));
  const ServerState state = WaitForRun(3);
  EXPECT_THAT(EventsOf(state, NameOf(2)), IsEmpty());
  EXPECT_EQ(trainers_.made(), 2u);
}

TEST_F(AttachTest, DropsALeaseThatTheServerHasForgotten) {
  trainers_.LimitTo(1, 5);
  Start();
  server_->Grant({RecallRun(1, 100)});
  trainers_.WaitUntilHeld(1);
  server_->Change([](ServerState& state) { state.dropped.insert(NameOf(1)); });
  server_->BreakStream();
  trainers_.WaitUntilGone(1);
  server_->Grant({RecallRun(2, 10)});
  ExpectWholeSeries(WaitForRun(2), 2, 0, 10);
}

TEST_F(AttachTest, DropsEverythingWithoutAServerForLongerThanTheGrace) {
  server_->Change([](ServerState& state) { state.grace_ms = 50; });
  trainers_.LimitTo(1, 5);
  Start();
  server_->Grant({RecallRun(1, 100), RecallRun(2, 100)});
  trainers_.WaitUntilHeld(1);
  server_->Stop();
  trainers_.WaitUntilGone(1);
  server_->Start();
  const ServerState state =
      server_->WaitUntil([](const ServerState& s) { return s.hellos.size() == 2; });
  EXPECT_THAT(state.hellos[1].held(), IsEmpty());
  EXPECT_EQ(trainers_.made(), 1u) << "the run that waited must not start";
}

TEST_F(AttachTest, LeavesWhenItsServerIsGoneForGood) {
  options.attach.orphan_timeout = absl::Milliseconds(50);
  Start();
  server_->WaitUntil([](const ServerState& state) { return state.attached; });
  server_->Stop();
  EXPECT_TRUE(WaitForEnd().ok());
}

}  // namespace
}  // namespace ablate::worker
