// Tests leases that end before their runs do, and the cost for the runs.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using storage::RunState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SchedulerExpiryTest : public SchedulerTest {};

// Collects reports of processes that hang.
class SchedulerHangTest : public SchedulerTest {
 protected:
  SchedulerHangTest() { Restart(Options()); }
  SchedulerOptions Options() {
    SchedulerOptions options;
    options.on_hung = [this](const LocalProcess& process, absl::string_view why) {
      hung_.push_back(absl::StrCat(process.worker, " ", process.pid, ": ", why));
    };
    return options;
  }
  std::vector<std::string> hung_;
};

TEST_F(SchedulerExpiryTest, LosesTheLeasesOfASilentWorker) {
  const Peer peer = TrainingWorker();
  Pass(absl::Seconds(29));
  EXPECT_TRUE(peer.open());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
  Pass(absl::Seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer.stream->closed));
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "started", "lost"));
}

TEST_F(SchedulerExpiryTest, ChargesALossOnlyToRunsThatHadBegun) {
  TrainingWorker();
  Pass(absl::Seconds(30));
  EXPECT_EQ(Run("a-0").losses, 1u);
  EXPECT_EQ(Run("a-1").losses, 0u);
  EXPECT_THAT(HistoryOf("a-1"), ElementsAre("queued", "granted", "released"));
}

TEST_F(SchedulerExpiryTest, HeartbeatsKeepALease) {
  const Peer peer = TrainingWorker();
  PassWithHeartbeats(absl::Minutes(5), {peer});
  EXPECT_TRUE(peer.open());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
}

TEST_F(SchedulerExpiryTest, LosesTheLeasesOfAWorkerThatDoesNotComeBack) {
  const Peer peer = TrainingWorker();
  scheduler_->Closed(peer.session);
  Pass(absl::Seconds(9));
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
}

TEST_F(SchedulerExpiryTest, ShowsADrainedDeviceUntilItsWorkerAttaches) {
  scheduler_->Exited({"cuda-0-train", true, "exit code 7: no driver"});
  EXPECT_THAT(scheduler_->Workers(), IsEmpty()) << "it is tried again";
  scheduler_->Exited({"cuda-0-train", true, "exit code 7: no driver", false, /*drained=*/true});
  ASSERT_THAT(scheduler_->Workers(), SizeIs(1));
  EXPECT_EQ(scheduler_->Workers()[0].name, "cuda-0-train");
  EXPECT_EQ(scheduler_->Workers()[0].unusable, "exit code 7: no driver");
  EXPECT_FALSE(scheduler_->Workers()[0].attached);
  const Peer peer = Attach("cuda-0-train", "g#1");
  ASSERT_THAT(scheduler_->Workers(), SizeIs(1));
  EXPECT_EQ(scheduler_->Workers()[0].unusable, "");
  scheduler_->Exited({"cuda-0-train", true, "exit code 7: lost", false, /*drained=*/true});
  ASSERT_THAT(scheduler_->Workers(), SizeIs(1)) << "known and drained, it is one worker";
  EXPECT_EQ(scheduler_->Workers()[0].unusable, "exit code 7: lost");
  scheduler_->Exited({"x-analysis", true, "exit code 7: no driver", true, true});
  EXPECT_TRUE(scheduler_->Workers()[1].analysis) << "its role is known before it has attached";
}

TEST_F(SchedulerExpiryTest, KeepsTheLeasesOfAWorkerThatComesBackInTime) {
  const Peer first = TrainingWorker();
  scheduler_->Closed(first.session);
  Pass(absl::Seconds(9));
  wire::FromWorker hello = Hello("w", "w#1");
  for (const wire::Grant& grant : first.grants()) {
    wire::HeldLease& held = *hello.mutable_hello()->add_held();
    held.set_lease(grant.lease());
    held.set_first_unacked(1);
  }
  const Peer second = Attach(hello);
  PassWithHeartbeats(absl::Minutes(1), {second});
  ASSERT_THAT(second.decisions(), SizeIs(2));
  EXPECT_EQ(second.decisions()[0].acked(), 1u);
  EXPECT_THAT(second.grants(), IsEmpty());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
}

TEST_F(SchedulerExpiryTest, ExpiresNothingInTheGraceAfterAStart) {
  TrainingWorker();
  Restart();
  Pass(absl::Seconds(59));
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_EQ(Run("a-0").losses, 1u);
  EXPECT_EQ(Run("a-1").losses, 0u);
}

TEST_F(SchedulerExpiryTest, TimeInWhichTheSchedulerDidNotRunExpiresNothing) {
  const Peer peer = TrainingWorker();
  clock_.Advance(absl::Minutes(10));
  scheduler_->Tick();
  SendHeartbeat(peer);
  Pass(absl::Seconds(1));
  EXPECT_TRUE(peer.open());
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
}

TEST_F(SchedulerExpiryTest, BlamesARunThatItsWorkerWasSteppingWhenItDiedByItself) {
  TrainingWorker();
  scheduler_->Exited({"w", true, "killed by SIGSEGV"});
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_EQ(Run("a-0").failures, 1u);
  EXPECT_EQ(Run("a-1").failures, 0u);
  EXPECT_EQ(Run("a-1").losses, 0u);
  EXPECT_EQ(disk_->RunEvents("a-0")->back().message, "killed by SIGSEGV");
}

TEST_F(SchedulerExpiryTest, BlamesTheRunsGrantedFirstWhenNoneIsKnownToStep) {
  Queue("a", 2);
  Attach();
  scheduler_->Exited({"w", true, "killed by SIGSEGV"});
  EXPECT_EQ(Run("a-0").failures, 1u);
  EXPECT_EQ(Run("a-1").failures, 0u);
}

TEST_F(SchedulerExpiryTest, FailsARunWithWhichItsWorkerDiesThreeTimes) {
  Queue("a", 1);
  for (int death = 1; death <= 3; ++death) {
    const Peer peer = Attach("w", "w#" + std::to_string(death));
    SendStarted(peer, peer.grants().at(0), 1);
    scheduler_->Exited({"w", true, "killed by SIGSEGV"});
  }
  EXPECT_EQ(Run("a-0").state, RunState::kFailed);
  EXPECT_EQ(Run("a-0").failure, "killed by SIGSEGV");
}

TEST_F(SchedulerExpiryTest, AKilledWorkerCostsNoAttempt) {
  TrainingWorker();
  scheduler_->Exited({"w", false, "killed by SIGKILL"});
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_EQ(Run("a-0").failures, 0u);
  EXPECT_EQ(Run("a-0").losses, 1u);
}

TEST_F(SchedulerExpiryTest, EventsThatArrivedBeforeADeathCount) {
  const Peer peer = TrainingWorker();
  store_.HoldBack();
  SendPoints(peer, peer.grants().at(0), 2, 10);
  SendFinished(peer, peer.grants().at(0), 3, 10);
  scheduler_->Exited({"w", true, "exit code 1"});
  store_.Release();
  EXPECT_EQ(Run("a-0").state, RunState::kDone);
}

TEST_F(SchedulerExpiryTest, EndsALeaseLaterWhenTheDiskIsFull) {
  TrainingWorker();
  store_.SetFull(true);
  scheduler_->Exited({"w", true, "killed by SIGSEGV"});
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
  store_.SetFull(false);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_EQ(Run("a-0").failures, 1u);
}

TEST_F(SchedulerExpiryTest, AWorkerThatReturnsBeforeItsEndIsCommittedKeepsItsLease) {
  const Peer first = TrainingWorker();
  scheduler_->Closed(first.session);
  store_.SetFull(true);
  Pass(absl::Seconds(15));
  wire::FromWorker hello = Hello("w", "w#1");
  hello.mutable_hello()->add_held()->set_lease(first.grants().at(0).lease());
  hello.mutable_hello()->mutable_held(0)->set_first_unacked(2);
  const Peer second = Attach(hello);
  ASSERT_THAT(second.decisions(), SizeIs(1));
  EXPECT_FALSE(second.decisions()[0].drop());
  store_.SetFull(false);
  PassWithHeartbeats(absl::Seconds(5), {second});
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "started"));
  EXPECT_THAT(HistoryOf("a-1"), ElementsAre("queued", "granted", "released", "granted"));
}

TEST_F(SchedulerExpiryTest, CancelsWithdrawnRunsAndGrantsOthers) {
  const Peer peer = TrainingWorker();
  const std::string other = Queue("b", 1);
  scheduler_->Dispatch();
  EXPECT_THAT(peer.grants(), SizeIs(2));
  const auto experiments = disk_->FindExperiments(storage::kServer, "a", 1);
  const auto cancelled = disk_->CancelExperiment(experiments->at(0));
  ASSERT_THAT(cancelled->withdrawals, SizeIs(2));
  scheduler_->Withdraw(cancelled->withdrawals);
  EXPECT_THAT(peer.cancels(), ElementsAre("l1", "l2"));
  EXPECT_THAT(peer.grants(), SizeIs(3));
  EXPECT_THAT(scheduler_->Workers().at(0).runs, ElementsAre("b-0"));
}

TEST_F(SchedulerExpiryTest, StopsOtherRunsOfAnExperimentWithTooManyFailures) {
  max_failed_ = 1;
  const Peer peer = TrainingWorker();
  Queue("b", 1);
  SendFailed(peer, peer.grants().at(0), 2);
  EXPECT_EQ(Run("a-1").state, RunState::kCancelled);
  EXPECT_THAT(peer.cancels(), ElementsAre("l2"));
  EXPECT_THAT(scheduler_->Workers().at(0).runs, ElementsAre("b-0"));
}

TEST_F(SchedulerExpiryTest, StopsThemAfterARestartOfTheServer) {
  max_failed_ = 1;
  TrainingWorker();
  Restart();
  wire::FromWorker hello = Holding(Holding(Hello("w", "w#1"), "l1", 2), "l2", 1);
  const Peer peer = Attach(hello);
  wire::Grant held;
  held.set_lease("l1");
  SendFailed(peer, held, 2);
  EXPECT_THAT(peer.cancels(), ElementsAre("l2"));
  EXPECT_THAT(scheduler_->Workers().at(0).runs, IsEmpty());
}

TEST_F(SchedulerExpiryTest, WaitsForTheStatesOfWhatTrains) {
  const Peer peer = TrainingWorker();
  const wire::Grant grant = peer.grants().at(0);
  const std::vector<storage::Withdrawal> leases = {
      {"l1", "w"}, {"l2", "w"}, {"l9", "w"}, {"l1", "nobody"}};
  int saved = 0;
  scheduler_->Save({leases[1], leases[2], leases[3]}, [&saved] { ++saved; });
  EXPECT_EQ(saved, 1) << "none of them trains";
  scheduler_->Save(leases, [&saved] { ++saved; });
  EXPECT_EQ(saved, 1);
  std::vector<std::string> asked;
  for (const wire::ToWorker& message : peer.stream->received) {
    if (message.has_save()) asked.push_back(message.save().lease());
  }
  EXPECT_THAT(asked, ElementsAre("l1"));
  SendPoints(peer, grant, 2, 1);
  EXPECT_EQ(saved, 1);
  SendResumeState(peer, grant, 3, std::string(64, 'a'));
  EXPECT_EQ(saved, 2);
  scheduler_->Save(leases, [&saved] { ++saved; });
  PassWithHeartbeats(SchedulerOptions().save_timeout, {peer});
  EXPECT_EQ(saved, 3) << "not for ever";
}

TEST_F(SchedulerExpiryTest, ADrainCostsNothing) {
  const Peer peer = TrainingWorker();
  scheduler_->DrainAll();
  EXPECT_TRUE(peer.drained());
  for (const wire::Grant& grant : peer.grants()) {
    const bool started = grant.run().run() == "a-0";
    wire::FromWorker released = EventOf(grant, started ? 2 : 1);
    released.mutable_event()->mutable_released();
    Send(peer, released);
  }
  scheduler_->Closed(peer.session);
  scheduler_->Exited({"w", true, "exit code 0"});
  for (const char* run : {"a-0", "a-1"}) {
    EXPECT_EQ(Run(run).state, RunState::kQueued);
    EXPECT_EQ(Run(run).failures + Run(run).losses, 0u);
  }
  EXPECT_THAT(Attach("w", "w#2").grants(), IsEmpty());
}

TEST_F(SchedulerExpiryTest, AWorkerThatGivesARunBackGetsNothingNew) {
  const Peer peer = TrainingWorker();
  wire::FromWorker released = EventOf(peer.grants().at(0), 2);
  released.mutable_event()->mutable_released();
  Send(peer, released);
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_THAT(peer.grants(), SizeIs(2));
}

TEST_F(SchedulerExpiryTest, ALateAnswerToALeavingProcessDoesNotConcernTheNext) {
  const Peer first = TrainingWorker();
  store_.HoldBack();
  wire::FromWorker released = EventOf(first.grants().at(0), 2);
  released.mutable_event()->mutable_released();
  Send(first, released);
  scheduler_->Closed(first.session);
  const Peer next = Attach("w", "w#2");
  store_.Release();
  scheduler_->Dispatch();
  EXPECT_THAT(next.grants(), SizeIs(2));
}

TEST_F(SchedulerHangTest, GivesUpALocalProcessThatIsSilent) {
  scheduler_->Started({"w", 17});
  const Peer peer = TrainingWorker();
  Pass(absl::Seconds(29));
  EXPECT_THAT(hung_, IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(hung_, ElementsAre("w 17: it sent nothing for 30s"));
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  Pass(absl::Minutes(10));
  EXPECT_THAT(hung_, SizeIs(1)) << "its supervisor knows";
}

TEST_F(SchedulerHangTest, GivesUpALocalProcessThatDoesNotAttach) {
  Pass(absl::Minutes(1));
  scheduler_->Started({"w", 17});
  Pass(absl::Seconds(119));
  EXPECT_THAT(hung_, IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(hung_, ElementsAre("w 17: it was not attached for 2m"));
  scheduler_->Exited({"w", false, "killed by SIGKILL"});
  scheduler_->Started({"w", 18});
  const Peer peer = Attach();
  PassWithHeartbeats(absl::Minutes(5), {peer});
  EXPECT_THAT(hung_, SizeIs(1));
  // Its stream ended and isn't replaced.
  scheduler_->Closed(peer.session);
  Pass(absl::Seconds(119));
  EXPECT_THAT(hung_, SizeIs(1));
  Pass(absl::Seconds(1));
  EXPECT_THAT(hung_, SizeIs(2));
}

TEST_F(SchedulerHangTest, LeavesAloneWhatHasEndedAndWhatIsNotLocal) {
  scheduler_->Started({"w", 17});
  TrainingWorker();
  scheduler_->Exited({"w", true, "exit code 1"});
  const Peer remote = Attach("elsewhere", "e#1");
  Pass(absl::Minutes(10));
  EXPECT_FALSE(remote.open());
  EXPECT_THAT(hung_, IsEmpty());
}

TEST_F(SchedulerHangTest, GivesUpNoProcessForATimeInWhichTheSchedulerDidNotRun) {
  Pass(absl::Minutes(1));
  scheduler_->Started({"w", 17});
  clock_.Advance(absl::Minutes(10));
  scheduler_->Tick();
  EXPECT_THAT(hung_, IsEmpty());
  const Peer peer = Attach();
  PassWithHeartbeats(absl::Minutes(5), {peer});
  EXPECT_THAT(hung_, IsEmpty());
}

TEST(SchedulerOptionsTest, WaitsInProportionToTheSilenceItAllows) {
  const SchedulerOptions usual;
  const SchedulerOptions same = WithSilence(usual.silence);
  EXPECT_EQ(same.heartbeat, usual.heartbeat);
  EXPECT_EQ(same.start_grace, usual.start_grace);
  const SchedulerOptions short_waits = WithSilence(absl::Seconds(3));
  EXPECT_EQ(short_waits.silence, absl::Seconds(3));
  EXPECT_EQ(short_waits.heartbeat, absl::Milliseconds(500));
  EXPECT_EQ(short_waits.absence, absl::Seconds(1));
  EXPECT_EQ(short_waits.start_grace, absl::Seconds(6));
  EXPECT_EQ(short_waits.attach_timeout, absl::Seconds(30)) << "a start takes its time";
  EXPECT_EQ(short_waits.step_watchdog, usual.step_watchdog);
}

// --- Runs and workers that are present, but make no steps.

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
  EXPECT_THAT(peer.cancels(), ElementsAre(stuck.lease()));
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "lost", "granted"));
  EXPECT_THAT(HistoryOf("a-1"), ElementsAre("queued", "granted"));
}

TEST_F(SchedulerProgressTest, AsksAWorkerToLeaveWhenNoLaneMakesSteps) {
  const Peer peer = TrainingWorker();
  PassWithHeartbeats(absl::Minutes(10) - absl::Seconds(1), {peer});
  EXPECT_FALSE(peer.drained());
  PassWithHeartbeats(absl::Seconds(1), {peer});
  EXPECT_TRUE(peer.drained());
  EXPECT_THAT(peer.cancels(), ElementsAre("l1", "l2"));
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
  ASSERT_TRUE(
      disk_->CancelExperiment(disk_->FindExperiments(storage::kServer, "a", 1)->at(0)).ok());
  scheduler_->Withdraw({{grant.lease(), "w"}});
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
