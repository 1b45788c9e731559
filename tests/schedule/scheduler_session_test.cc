// Sessions: hello, decisions, events and their acknowledgement.
#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/schedule/scheduler_fixture.h"
#include "tests/storage/waiting.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using storage::RunState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SchedulerSessionTest : public SchedulerTest {};

TEST_F(SchedulerSessionTest, ClosesTheStreamWhenItsFirstMessageIsNotHello) {
  const Peer peer = Open();
  SendHeartbeat(peer);
  EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed));
}

TEST_F(SchedulerSessionTest, ClosesTheStreamOnASecondHello) {
  const Peer peer = Attach();
  Send(peer, Hello("w", "w#1"));
  EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed));
}

TEST_F(SchedulerSessionTest, ClosesTheStreamOnAnEmptyMessage) {
  const Peer peer = Attach();
  Send(peer, wire::FromWorker());
  EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed));
}

TEST_F(SchedulerSessionTest, ClosesTheStreamThatSaysNothing) {
  const Peer peer = Open();
  Pass(absl::Seconds(29));
  EXPECT_TRUE(peer.open());
  Pass(absl::Seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer.stream->closed));
}

TEST_F(SchedulerSessionTest, NamesTheFieldOfAMalformedHello) {
  wire::FromWorker hello = Hello("w", "w#1");
  hello.mutable_hello()->set_lanes(0);
  const Peer peer = Attach(hello);
  EXPECT_THAT(std::string(peer.stream->closed.message()), HasSubstr("hello.lanes is 0"));
  EXPECT_THAT(scheduler_->Workers(), IsEmpty());
}

TEST_F(SchedulerSessionTest, WelcomesBeforeAnythingElse) {
  Queue("a", 1);
  const Peer peer = Attach();
  ASSERT_THAT(peer.stream->received, SizeIs(2));
  EXPECT_EQ(peer.stream->received[0].welcome().heartbeat_ms(), 5000u);
  EXPECT_EQ(peer.stream->received[0].welcome().grace_ms(), 60000u);
  EXPECT_TRUE(peer.stream->received[1].has_grant());
}

TEST_F(SchedulerSessionTest, AcknowledgesOnlyAfterTheCommit) {
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  store_.HoldBack();
  SendStarted(peer, grant, 1);
  SendPoints(peer, grant, 2, 1);
  EXPECT_EQ(peer.acked(grant.lease()), 0u);
  EXPECT_EQ(Run("a-0").step, 0u);
  store_.Release();
  EXPECT_EQ(peer.acked(grant.lease()), 2u);
  EXPECT_EQ(Run("a-0").step, 1u);
}

TEST_F(SchedulerSessionTest, AcknowledgesRepeatedEventsWithoutApplyingThemAgain) {
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  SendPoints(peer, grant, 1, 1);
  SendPoints(peer, grant, 1, 1);
  EXPECT_EQ(peer.acked(grant.lease()), 1u);
  EXPECT_TRUE(peer.open());
  EXPECT_EQ(disk_->Summaries({"a-0"})->at(0).keys.at(0).count, 1u);
}

TEST_F(SchedulerSessionTest, ClosesTheStreamOnAGapAndTakesTheEventsOnTheNext) {
  Queue("a", 1);
  const Peer first = Attach();
  const wire::Grant grant = first.grants().at(0);
  SendStarted(first, grant, 1);
  SendPoints(first, grant, 3, 2);
  EXPECT_TRUE(absl::IsAborted(first.stream->closed));
  const Peer second = Attach(Holding(Hello("w", "w#1"), grant.lease(), 2));
  ASSERT_THAT(second.decisions(), SizeIs(1));
  EXPECT_FALSE(second.decisions()[0].drop());
  EXPECT_EQ(second.decisions()[0].acked(), 1u);
  EXPECT_GT(second.decisions()[0].credit_bytes(), 0u);
  SendPoints(second, grant, 2, 1);
  SendPoints(second, grant, 3, 2);
  EXPECT_EQ(second.acked(grant.lease()), 3u);
}

TEST_F(SchedulerSessionTest, IgnoresAStreamThatWasReplaced) {
  Queue("a", 1);
  const Peer first = Attach();
  const wire::Grant grant = first.grants().at(0);
  const Peer second = Attach(Holding(Hello("w", "w#1"), grant.lease(), 1));
  EXPECT_TRUE(absl::IsAborted(first.stream->closed));
  SendStarted(first, grant, 1);
  scheduler_->Closed(first.session);
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted"));
  SendStarted(second, grant, 1);
  EXPECT_EQ(second.acked(grant.lease()), 1u);
  EXPECT_TRUE(scheduler_->Workers().at(0).attached);
}

TEST_F(SchedulerSessionTest, KeepsWhatArrivedBeforeTheStreamBroke) {
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  store_.HoldBack();
  SendStarted(peer, grant, 1);
  SendPoints(peer, grant, 2, 10);
  SendFinished(peer, grant, 3, 10);
  scheduler_->Closed(peer.session);
  store_.Release();
  EXPECT_EQ(Run("a-0").state, RunState::kDone);
  EXPECT_THAT(scheduler_->Workers().at(0).runs, IsEmpty());
}

TEST_F(SchedulerSessionTest, RequeuesALeasedRunThatTheWorkerDoesNotHold) {
  Queue("a", 1);
  const Peer first = Attach();
  scheduler_->Closed(first.session);
  const Peer second = Attach();
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "lost", "granted"));
  ASSERT_THAT(second.grants(), SizeIs(1));
  EXPECT_EQ(second.grants()[0].lease(), "l2");
}

TEST_F(SchedulerSessionTest, DropsTheLeasesOfAnEarlierProcess) {
  Queue("a", 1);
  const Peer first = Attach("w", "w#1");
  SendStarted(first, first.grants().at(0), 1);
  const Peer second = Attach(Holding(Hello("w", "w#2"), first.grants().at(0).lease(), 2));
  EXPECT_TRUE(absl::IsAlreadyExists(first.stream->closed)) << "it must not come back";
  ASSERT_THAT(second.decisions(), SizeIs(1));
  EXPECT_TRUE(second.decisions()[0].drop());
  EXPECT_THAT(second.grants(), SizeIs(1));
  EXPECT_EQ(Run("a-0").losses, 1u);
}

TEST_F(SchedulerSessionTest, DropsALeaseWithEventsThatTheStoreNeverHad) {
  Queue("a", 1);
  const Peer first = Attach();
  scheduler_->Closed(first.session);
  const Peer second = Attach(Holding(Hello("w", "w#1"), first.grants().at(0).lease(), 5));
  ASSERT_THAT(second.decisions(), SizeIs(1));
  EXPECT_TRUE(second.decisions()[0].drop());
  ASSERT_THAT(second.grants(), SizeIs(1));
  EXPECT_EQ(second.grants()[0].run().run(), "a-0");
}

TEST_F(SchedulerSessionTest, DropsALeaseWhoseEndIsBeingCommitted) {
  const Peer first = TrainingWorker();
  const std::string lease = first.grants().at(0).lease();
  store_.HoldBack();
  Pass(absl::Seconds(30));
  ASSERT_FALSE(first.open()) << "it was silent";
  const Peer second = Attach(Holding(Hello("w", "w#1"), lease, 2));
  ASSERT_THAT(second.decisions(), SizeIs(1));
  EXPECT_TRUE(second.decisions()[0].drop());
  Pass(absl::Seconds(3));
  EXPECT_EQ(store_.ends(), 2) << "one a lease, however long the disk takes";
  store_.Release();
  EXPECT_EQ(Run("a-0").losses, 1u);
  ASSERT_FALSE(second.grants().empty());
  EXPECT_EQ(second.grants()[0].run().run(), "a-0");
}

TEST_F(SchedulerSessionTest, CancelsARunWhoseLeaseIsGone) {
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  ASSERT_TRUE(EndLeaseAndWait(*disk_, grant.lease(), {storage::LeaseEnd::kReleased, ""}).ok());
  SendStarted(peer, grant, 1);
  EXPECT_THAT(peer.cancels(), Contains(grant.lease()));
  EXPECT_EQ(peer.acked(grant.lease()), 0u);
  EXPECT_THAT(peer.grants(), SizeIs(2));
}

TEST_F(SchedulerSessionTest, CountsAMalformedEventAgainstItsRun) {
  Queue("a", 1);
  const Peer peer = Attach();
  wire::FromWorker message = EventOf(peer.grants().at(0), 1);
  message.mutable_event()->mutable_points()->add_columns()->set_key("");
  Send(peer, message);
  EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed));
  EXPECT_EQ(Run("a-0").state, RunState::kQueued);
  EXPECT_EQ(Run("a-0").failures, 1u);
}

// This once made a run of 100,000 steps DONE at step 7.
TEST_F(SchedulerSessionTest, FailsARunWhoseWorkersSayAgainAndAgainThatItIsDoneTooEarly) {
  Queue("a", 1);
  for (uint32_t failures = 1; failures <= storage::kMaxFailuresWithoutProgress; ++failures) {
    const Peer peer = Attach();
    ASSERT_THAT(peer.grants(), SizeIs(1));
    SendStarted(peer, peer.grants()[0], 1);
    SendFinished(peer, peer.grants()[0], 2, 7);  // the run has 10 steps
    EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed));
    EXPECT_EQ(Run("a-0").failures, failures);
  }
  EXPECT_EQ(Run("a-0").state, RunState::kFailed);
  EXPECT_THAT(Run("a-0").failure, HasSubstr("finished.step: 7; expected 10"));
  EXPECT_THAT(Attach().grants(), IsEmpty());
}

TEST_F(SchedulerSessionTest, LosesOnlyTheLeaseWhoseEventTheStoreRefuses) {
  Queue("a", 2);
  const Peer peer = Attach();
  const wire::Grant good = peer.grants().at(0);
  const wire::Grant bad = peer.grants().at(1);
  store_.HoldBack();
  SendStarted(peer, good, 1);
  SendPoints(peer, good, 2, 1);
  SendPoints(peer, bad, 1, 1000);  // the run has 10 steps
  store_.Release();
  EXPECT_EQ(Run("a-0").step, 1u);
  EXPECT_EQ(Run("a-0").losses, 0u);
  EXPECT_EQ(Run("a-1").failures, 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed));
}

TEST_F(SchedulerSessionTest, LosesNoPartOfARefusedGroupWhenTheDiskIsFullNext) {
  Queue("a", 2);
  const Peer peer = Attach();
  const wire::Grant good = peer.grants().at(0);
  const wire::Grant bad = peer.grants().at(1);
  store_.HoldBack();
  SendStarted(peer, good, 1);
  SendPoints(peer, good, 2, 1);
  SendPoints(peer, bad, 1, 1000);  // the run has 10 steps
  store_.FillOnceRefused();
  store_.Release();
  EXPECT_EQ(Run("a-0").step, 0u);
  store_.SetFull(false);
  PassWithHeartbeats(absl::Seconds(5), {peer});
  EXPECT_EQ(Run("a-0").step, 1u);
  EXPECT_EQ(peer.acked(good.lease()), 2u);
  EXPECT_EQ(Run("a-1").failures, 1u);
}

TEST_F(SchedulerSessionTest, KnowsOnlySoManyWorkersOfAUser) {
  for (int i = 0; i < kMaxKnownWorkersOfUser; ++i) {
    const std::string name = absl::StrCat("w", i, "@gpu2");
    EXPECT_TRUE(Attach(name, name).open()) << name;
  }
  const Peer more = Attach("more@gpu2", "more@gpu2");
  EXPECT_TRUE(absl::IsResourceExhausted(more.stream->closed)) << more.stream->closed;
  EXPECT_TRUE(Attach("w7@gpu2", "again@gpu2").open()) << "one that it knows";
  EXPECT_TRUE(Attach("w@gpu3", "w@gpu3").open()) << "another user's";
  EXPECT_TRUE(Attach().open()) << "one on this machine";
}

TEST_F(SchedulerSessionTest, ClosesTheStreamOfAHeartbeatThatIsTooLong) {
  const Peer peer = Attach();
  wire::FromWorker message;
  for (int i = 0; i < 5'000; ++i) message.mutable_heartbeat()->add_leases()->set_lease("l");
  Send(peer, message);
  EXPECT_TRUE(absl::IsInvalidArgument(peer.stream->closed)) << peer.stream->closed;
}

TEST_F(SchedulerSessionTest, ClosesAStreamThatOverrunsItsCredit) {
  SchedulerOptions options;
  options.credit_bytes = 100;
  Restart(options);
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  store_.HoldBack();
  for (uint64_t seq = 1; seq <= 4; ++seq) SendPoints(peer, grant, seq, static_cast<uint32_t>(seq));
  EXPECT_TRUE(absl::IsResourceExhausted(peer.stream->closed));
  store_.Release();
}

TEST_F(SchedulerSessionTest, HoldsBackAcknowledgementsWhileTheDiskIsFull) {
  Queue("a", 1);
  const Peer peer = Attach();
  const wire::Grant grant = peer.grants().at(0);
  store_.SetFull(true);
  SendStarted(peer, grant, 1);
  SendPoints(peer, grant, 2, 1);
  PassWithHeartbeats(absl::Seconds(90), {peer});
  EXPECT_TRUE(peer.open());
  EXPECT_EQ(peer.acked(grant.lease()), 0u);
  store_.SetFull(false);
  PassWithHeartbeats(absl::Seconds(20), {peer});
  EXPECT_EQ(peer.acked(grant.lease()), 2u);
  EXPECT_EQ(Run("a-0").step, 1u);
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "started"));
}

// --- What is kept of a worker: its last words, and how long it is listed.

class SchedulerWorkersTest : public SchedulerTest {};

// Otherwise clients could not parse them.
TEST_F(SchedulerWorkersTest, KeepsLastWordsAsWellFormedText) {
  Queue("a", 1);
  const Peer peer = Attach();
  SendStarted(peer, peer.grants().at(0), 1);
  scheduler_->Exited({"w", true, "exit code 1: caf\xc3\xa9 \xff, cut \xe2\x82"});
  const auto events = disk_->RunEvents("a-0");
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->back().message, "exit code 1: caf\xc3\xa9 \\xff, cut \\xe2\\x82");
}

TEST_F(SchedulerWorkersTest, ForgetsAWorkerThatStaysAway) {
  Queue("a", 1);
  const Peer gone = Attach("gone", "gone#1");
  const Peer here = Attach("here", "here#1");
  scheduler_->Closed(gone.session);
  PassWithHeartbeats(absl::Minutes(59), {here});
  ASSERT_EQ(scheduler_->Workers().size(), 2u);
  EXPECT_FALSE(scheduler_->Workers()[0].attached);
  PassWithHeartbeats(absl::Minutes(2), {here});
  ASSERT_EQ(scheduler_->Workers().size(), 1u);
  EXPECT_EQ(scheduler_->Workers()[0].name, "here");
}

TEST_F(SchedulerWorkersTest, ForgetsAWorkerElsewhereSooner) {
  Queue("a", 1);
  const Peer gone = Attach("pilot@ci", "pilot#1");
  const Peer here = Attach("here", "here#1");
  scheduler_->Closed(gone.session);
  PassWithHeartbeats(absl::Minutes(14), {here});
  ASSERT_EQ(scheduler_->Workers().size(), 2u);
  PassWithHeartbeats(absl::Minutes(2), {here});
  EXPECT_EQ(scheduler_->Workers().size(), 1u);
}

TEST_F(SchedulerSessionTest, KnowsTheUseOfADeviceByTheLastHeartbeat) {
  const Peer peer = Attach();
  wire::FromWorker message;
  message.mutable_heartbeat()->mutable_device_use()->set_utilization(62);
  scheduler_->Receive(peer.session, message);
  ASSERT_TRUE(scheduler_->Workers().at(0).device_use.has_value());
  EXPECT_EQ(scheduler_->Workers()[0].device_use->utilization(), 62u);
  scheduler_->Closed(peer.session);
  EXPECT_FALSE(scheduler_->Workers().at(0).device_use.has_value()) << "away";
  EXPECT_FALSE(Attach().stream == nullptr);
  EXPECT_FALSE(scheduler_->Workers().at(0).device_use.has_value()) << "of the stream before";
}

}  // namespace
}  // namespace ablate::schedule
