// Tests the orderly end: states saved, everything returned and acknowledged.
#include <gmock/gmock.h>

#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class DrainTest : public WorkerTest {
 protected:
  // Starts two runs: run 1 is held at step 8, run 2 waits for the lane.
  void StartTwoRuns() {
    trainers_.LimitTo(1, 8);
    Start();
    server_->Grant({RecallRun(1, 100)});
    server_->Grant({RecallRun(2, 100)});
    trainers_.WaitUntilHeld(1);
    server_->WaitUntil([](const ServerState& state) {
      return !state.heartbeats.empty() && state.heartbeats.back().leases_size() == 1;
    });
  }

  static void ExpectSavedAndReleased(const ServerState& state) {
    const auto first = EventsOf(state, NameOf(1));
    ASSERT_GE(first.size(), 4u);
    const v1::Event& saved = first[first.size() - 2];
    EXPECT_EQ(saved.resume_state().step(), 8u);
    EXPECT_EQ(state.blobs.at(saved.resume_state().blob()), FakeState(1, 8));
    EXPECT_TRUE(first.back().has_released());
    ExpectWholeSeries(state, 1, 0, 8);
    const auto second = EventsOf(state, NameOf(2));
    ASSERT_EQ(second.size(), 1u);
    EXPECT_TRUE(second[0].has_released());
  }
};

TEST_F(DrainTest, SavesAndGivesBackWhenTheServerAsks) {
  StartTwoRuns();
  // Run 2 has arrived, because it was granted earlier.
  server_->Drain();
  EXPECT_TRUE(WaitForEnd().ok());
  ExpectSavedAndReleased(server_->state());
}

TEST_F(DrainTest, SavesAndGivesBackWhenTheProcessIsToEnd) {
  StartTwoRuns();
  // Once a later message has been handled, run 2 is known.
  server_->Cancel("nobody");
  server_->BreakStream();
  server_->WaitUntil([](const ServerState& state) {
    return state.hellos.size() == 2 && state.hellos[1].held_size() == 2;
  });
  worker().Drain();
  EXPECT_TRUE(WaitForEnd().ok());
  ExpectSavedAndReleased(server_->state());
}

TEST_F(DrainTest, EndsAtOnceWithNothingToDo) {
  Start();
  server_->WaitUntil([](const ServerState& state) { return state.attached; });
  worker().Drain();
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_THAT(server_->state().events, IsEmpty());
}

TEST_F(DrainTest, SavesNothingForARunThatMadeNoStep) {
  trainers_.LimitTo(1, 0);
  Start();
  server_->Grant({RecallRun(1, 100)});
  trainers_.WaitUntilHeld(1);
  worker().Drain();
  EXPECT_TRUE(WaitForEnd().ok());
  const ServerState state = server_->state();
  EXPECT_FALSE(Has(state, NameOf(1), v1::Event::kResumeState));
  EXPECT_TRUE(Has(state, NameOf(1), v1::Event::kReleased));
}

TEST_F(DrainTest, DeliversWhatItSavedAfterAReconnection) {
  StartTwoRuns();
  server_->Stop();
  worker().Drain();
  server_->Start();
  EXPECT_TRUE(WaitForEnd().ok());
  const ServerState state = server_->state();
  EXPECT_TRUE(Has(state, NameOf(1), v1::Event::kReleased));
  EXPECT_TRUE(Has(state, NameOf(2), v1::Event::kReleased));
}

TEST_F(DrainTest, LeavesWhenNobodyAcknowledgesInTime) {
  options.drain_timeout = absl::Milliseconds(100);
  StartTwoRuns();
  server_->Change([](ServerState& state) { state.hold_acks = true; });
  worker().Drain();
  EXPECT_TRUE(WaitForEnd().ok());
}

TEST_F(DrainTest, ReleasesWhatIsGrantedMeanwhile) {
  StartTwoRuns();
  server_->Change([](ServerState& state) { state.hold_acks = true; });
  worker().Drain();
  server_->WaitUntil(
      [](const ServerState& state) { return Has(state, NameOf(1), v1::Event::kReleased); });
  server_->Grant({RecallRun(3, 100)});
  WaitForRun(3);
  server_->ReleaseAcks();
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_TRUE(Has(server_->state(), NameOf(3), v1::Event::kReleased));
  EXPECT_EQ(trainers_.made(), 1u);
}

TEST_F(DrainTest, ADeviceThatCannotTrainEndsTheWorkerBeforeItAttaches) {
  options.prepare_lane = [] { return absl::InternalError("no such instruction"); };
  Start();
  const absl::Status end = WaitForEnd();
  EXPECT_THAT(std::string(end.message()), HasSubstr("no such instruction"));
  EXPECT_THAT(server_->state().hellos, IsEmpty());
}

}  // namespace
}  // namespace ablate::worker
