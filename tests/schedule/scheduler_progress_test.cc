// Runs and workers that are there, but make no steps.
#include <gmock/gmock.h>

#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using storage::RunState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SchedulerProgressTest : public SchedulerTest {};

TEST_F(SchedulerProgressTest, TakesBackARunThatMakesNoStep) {
  Pass(absl::Seconds(60));
  Queue("a", 2);
  const Peer peer = Attach("w", "w#1", 2);
  const wire::Grant stuck = peer.grants().at(0);
  const wire::Grant other = peer.grants().at(1);
  for (absl::Duration since; since <= absl::Minutes(10); since += absl::Seconds(1)) {
    ASSERT_THAT(peer.cancels(), IsEmpty()) << since;
    SendProgress(peer, stuck, since);
    SendProgress(peer, other, absl::ZeroDuration());
    Pass(absl::Seconds(1));
  }
  EXPECT_THAT(peer.cancels(), ElementsAre(stuck.lease() + "/"));
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "lost", "granted"));
  EXPECT_THAT(HistoryOf("a-1"), ElementsAre("queued", "granted"));
}

TEST_F(SchedulerProgressTest, AsksAWorkerToLeaveWhenNoLaneMakesSteps) {
  const Peer peer = TrainingWorker();
  PassWithHeartbeats(absl::Minutes(10) - absl::Seconds(1), {peer});
  EXPECT_FALSE(peer.drained());
  PassWithHeartbeats(absl::Seconds(1), {peer});
  EXPECT_TRUE(peer.drained());
  EXPECT_THAT(peer.cancels(), ElementsAre("l1/", "l2/"));
  EXPECT_EQ(Run("a-0").losses, 1u);
  EXPECT_EQ(Run("a-1").losses, 0u);
  const Peer next = Attach("w", "w#2");
  EXPECT_FALSE(next.drained());
  EXPECT_THAT(next.grants(), SizeIs(2));
}

TEST_F(SchedulerProgressTest, AWorkerWithoutWorkMayDoNothing) {
  Pass(absl::Seconds(60));
  const Peer peer = Attach();
  PassWithHeartbeats(absl::Minutes(30), {peer});
  Queue("a", 1);
  PassWithHeartbeats(absl::Minutes(5), {peer});
  EXPECT_FALSE(peer.drained());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
}

TEST_F(SchedulerProgressTest, CancelsARunThatAHeartbeatNamesAndNoLeaseHas) {
  const Peer peer = TrainingWorker();
  const wire::Grant grant = peer.grants().at(0);
  ASSERT_TRUE(disk_->CancelExperiment(disk_->FindExperiments("a", 1)->at(0)).ok());
  scheduler_->Withdraw({{grant.lease(), "a-0", "w"}});
  ASSERT_THAT(peer.cancels(), SizeIs(1));
  SendProgress(peer, grant, absl::ZeroDuration());
  EXPECT_THAT(peer.cancels(), SizeIs(2));
}

TEST_F(SchedulerProgressTest, AsksALeavingWorkerAgainWhenItAttachesAgain) {
  const Peer first = TrainingWorker();
  PassWithHeartbeats(absl::Minutes(10), {first});
  const Peer second = Attach("w", "w#1");
  EXPECT_TRUE(second.drained());
  EXPECT_THAT(second.grants(), IsEmpty());
}

TEST_F(SchedulerProgressTest, OldNewsOfAStepAreNoLackOfProgress) {
  SchedulerOptions options;
  options.silence = absl::Hours(1);
  Restart(options);
  const Peer peer = TrainingWorker();
  SendProgress(peer, peer.grants().at(0), absl::Minutes(9));
  Pass(absl::Minutes(20));
  EXPECT_THAT(peer.cancels(), IsEmpty());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
}

TEST_F(SchedulerProgressTest, AFullDiskIsNoLackOfProgress) {
  const Peer peer = TrainingWorker();
  store_.SetFull(true);
  SendPoints(peer, peer.grants().at(0), 2, 1);
  for (absl::Duration since; since < absl::Minutes(12); since += absl::Seconds(1)) {
    SendProgress(peer, peer.grants().at(0), since);
    Pass(absl::Seconds(1));
  }
  EXPECT_THAT(peer.cancels(), IsEmpty());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
}

}  // namespace
}  // namespace ablate::schedule
