// Grants, events and ends of leases: every transition, and the invariants from both sides.
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/mutex.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class LeasesTest : public StoreTest {
 protected:
  ResumeStateEvent Resume(uint32_t step) {
    const std::string bytes = absl::StrCat("state at ", step);
    return {step, Publish(bytes), bytes.size()};
  }
  CheckpointEvent Checkpoint(uint32_t step) {
    const std::string bytes = absl::StrCat("weights at ", step);
    return {step, Publish(bytes), bytes.size()};
  }
  PointsEvent Losses(uint32_t from, uint32_t to) {
    Column column{"train/loss", {}, {}};
    for (uint32_t step = from; step < to; ++step) {
      column.steps.push_back(step);
      column.values.push_back(100.0 - step);
    }
    return MakePoints(to, {column});
  }
  // A new lease's name.
  std::string Name() { return absl::StrCat("lease-", ++names_); }
  // Fails the run once; it must be queued.
  void FailOnce(const std::string& run) {
    Lease lease(&store(), Name(), {run});
    ASSERT_EQ(lease.Send(run, FailedEvent{"boom"}), Applied::kApplied);
  }
  void LoseOnce(const std::string& run) {
    Lease lease(&store(), Name(), {run});
    ASSERT_THAT(lease.granted(), SizeIs(1));
    ASSERT_TRUE(store().EndLease(lease.name(), LeaseEnd::kLost, {}, "silent").ok());
  }

 private:
  int names_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, LeasesTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(LeasesTest, GrantsQueuedRunsOnly) {
  const std::string id = Submit({"a", "b", "done"}).id;
  Train({"done"});
  const uint64_t before = store().change_number();
  Lease lease(&store(), "l1", {"a", "done", "unknown", "a", "b"});
  ASSERT_THAT(lease.granted(), SizeIs(2));
  const GrantedRun& run = lease.granted()[0];
  EXPECT_EQ(run.run, "a");
  EXPECT_EQ(run.spec, "spec of a");
  EXPECT_EQ(run.resume_blob, "");
  EXPECT_EQ(run.resume_step, 0u);
  EXPECT_EQ(StateOf("a"), RunState::kLeased);
  EXPECT_EQ(Run("a").worker, "cpu-train");
  EXPECT_EQ(Run("a").trainer, "torch");
  EXPECT_EQ(Run("a").device, "2 cores");
  EXPECT_EQ(Run("a").build, "0.1");
  EXPECT_GT(store().change_number(), before);
  EXPECT_EQ(Value(store().GetExperiment(id)).counts.running, 2u);
  ExpectConsistent(id);
  const auto leases = Value(store().ListLeases());
  ASSERT_THAT(leases, SizeIs(2));  // the finished one answers repetitions
  EXPECT_EQ(leases[1].lease, "l1");
  EXPECT_EQ(leases[1].acked, 0u);
  EXPECT_EQ(leases[1].holder.incarnation, "i1");
  EXPECT_THAT(leases[1].runs, ElementsAre("a", "b"));
  EXPECT_TRUE(Value(store().LeaseExists("l1")));
}

TEST_P(LeasesTest, MakesNoLeaseWhenNothingIsQueued) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  Lease second(&store(), "l2", {"a"});
  EXPECT_THAT(second.granted(), IsEmpty());
  EXPECT_FALSE(Value(store().LeaseExists("l2")));
}

TEST_P(LeasesTest, RefusesALeaseIdThatIsTaken) {
  Submit({"a", "b"});
  Lease first(&store(), "l1", {"a"});
  const auto second = store().Grant("l1", {"w", "i", "d", "b", "t"}, {"b"});
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(StateOf("b"), RunState::kQueued);
}

TEST_P(LeasesTest, FollowsARunToItsEnd) {
  const std::string id = Submit({"a"}).id;
  Lease lease(&store(), "l", {"a"});
  Advance(10);
  const Micros started = now();
  EXPECT_EQ(lease.Send("a", StartedEvent{}), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", Losses(0, 40)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", Checkpoint(40)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", Resume(40)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", Losses(40, 100)), Applied::kApplied);
  EXPECT_EQ(Run("a").step, 100u);
  Advance(10);
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 100}), Applied::kApplied);
  const RunRecord run = Run("a");
  EXPECT_EQ(run.state, RunState::kDone);
  EXPECT_EQ(run.start_time, started);
  EXPECT_EQ(run.end_time, now());
  EXPECT_EQ(run.device_time, 2000);
  EXPECT_EQ(run.worker, "cpu-train");
  EXPECT_THAT(History("a"), ElementsAre("queued", "granted", "started", "done"));
  const ExperimentRecord record = Value(store().GetExperiment(id));
  EXPECT_EQ(record.state, ExperimentState::kEnded);
  EXPECT_EQ(record.end_time, now());
  EXPECT_EQ(record.counts.done, 1u);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(100));
  const auto artifacts = Value(store().ListArtifacts("a"));
  ASSERT_THAT(artifacts, SizeIs(1));
  EXPECT_EQ(artifacts[0].run, "a");
  EXPECT_EQ(artifacts[0].kind, "checkpoint");
  EXPECT_EQ(artifacts[0].step, 40u);
  EXPECT_EQ(artifacts[0].blob, Sha256Hex("weights at 40"));
  EXPECT_EQ(artifacts[0].bytes, 13u);
}

TEST_P(LeasesTest, EndsAsDiverged) {
  const std::string id = Submit({"a"}).id;
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", Losses(0, 12));
  lease.Send("a", FinishedEvent{true, 12});
  EXPECT_EQ(StateOf("a"), RunState::kDiverged);
  EXPECT_EQ(Run("a").step, 12u);
  EXPECT_EQ(History("a").back(), "diverged");
  ExpectConsistent(id);
}

TEST_P(LeasesTest, AppliesEachEventOnce) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent first = lease.Next("a", Losses(0, 10));
  const LeaseEvent second = lease.Next("a", Losses(10, 20));
  const LeaseEvent third = lease.Next("a", Losses(20, 30));
  EXPECT_EQ(lease.Send(second), Applied::kGap);
  EXPECT_EQ(lease.Send(first), Applied::kApplied);
  EXPECT_EQ(lease.Send(first), Applied::kRepeated);
  EXPECT_EQ(lease.Send(third), Applied::kGap);
  EXPECT_THAT(
      Value(store().Apply("i1", {first, second, second, third})),
      ElementsAre(Applied::kRepeated, Applied::kApplied, Applied::kRepeated, Applied::kApplied));
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(30));
  EXPECT_EQ(Value(store().Summaries({"a"}))[0][0].count, 30u);
  EXPECT_EQ(Run("a").device_time, 3000);
}

TEST_P(LeasesTest, DropsEventsOfStrangers) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent event = lease.Next("a", Losses(0, 10));
  EXPECT_THAT(Value(store().Apply("i2", {event})), ElementsAre(Applied::kNoLease));
  LeaseEvent unknown = event;
  unknown.lease = "nothing";
  EXPECT_THAT(Value(store().Apply("i1", {unknown})), ElementsAre(Applied::kNoLease));
  EXPECT_EQ(Run("a").step, 0u);
  EXPECT_EQ(lease.Send(event), Applied::kApplied);
}

TEST_P(LeasesTest, KeepsTheSequenceWhenARunLeft) {
  const std::string first = Submit({"a"}).id;
  Submit({"b"});
  Lease lease(&store(), "l", {"a", "b"});
  lease.Send("a", Losses(0, 10));
  ASSERT_THAT(Value(store().CancelExperiment(first)), SizeIs(1));
  const LeaseEvent late = lease.Next("a", Losses(10, 20));
  EXPECT_EQ(lease.Send(late), Applied::kNoLease);
  EXPECT_EQ(lease.Send("b", Losses(0, 10)), Applied::kApplied);
  EXPECT_EQ(lease.Send(late), Applied::kRepeated);
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 100}), Applied::kNoLease);
  EXPECT_EQ(StateOf("a"), RunState::kCancelled);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(10));
  EXPECT_EQ(Value(store().CheckLease("l", "i1", 5)).acked, 4u);
}

TEST_P(LeasesTest, RefusesARunOfAnotherLease) {
  Submit({"a", "b"});
  Lease first(&store(), "l1", {"a"});
  Lease second(&store(), "l2", {"b"});
  EXPECT_EQ(first.Send("b", FinishedEvent{false, 100}), Applied::kNoLease);
  EXPECT_EQ(StateOf("b"), RunState::kLeased);
}

TEST_P(LeasesTest, AcknowledgesRepetitionsAfterTheLastRunEnded) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent end = lease.Next("a", FinishedEvent{false, 100});
  EXPECT_EQ(lease.Send(end), Applied::kApplied);
  Reopen();
  EXPECT_THAT(Value(store().Apply("i1", {end})), ElementsAre(Applied::kRepeated));
  const LeaseVerdict verdict = Value(store().CheckLease("l", "i1", 1));
  EXPECT_FALSE(verdict.drop);
  EXPECT_EQ(verdict.acked, 1u);
}

TEST_P(LeasesTest, ForgetsFinishedLeasesWhenAnotherIncarnationComes) {
  Submit({"a", "b", "c"});
  Lease finished(&store(), "l1", {"a"});
  finished.Send("a", FinishedEvent{false, 100});
  Lease same(&store(), "l2", {"b"});
  EXPECT_TRUE(Value(store().LeaseExists("l1")));
  Lease other_worker(&store(), "l3", {"c"}, "gpu", "i9");
  EXPECT_TRUE(Value(store().LeaseExists("l1")));
  other_worker.Send("c", ReleasedEvent{});
  Lease next(&store(), "l4", {"c"}, "cpu-train", "i2");
  EXPECT_FALSE(Value(store().LeaseExists("l1")));
  EXPECT_TRUE(Value(store().LeaseExists("l2")));  // holds a run: the scheduler ends it
}

TEST_P(LeasesTest, ForgetsFinishedLeasesAfterADay) {
  Submit({"a", "b"});
  Lease finished(&store(), "l1", {"a"});
  finished.Send("a", FinishedEvent{false, 100});
  Lease live(&store(), "l2", {"b"});
  Advance(Micros{23} * 3600 * 1000000);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(Value(store().LeaseExists("l1")));
  Advance(Micros{2} * 3600 * 1000000);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(Value(store().LeaseExists("l1")));
  EXPECT_TRUE(Value(store().LeaseExists("l2")));
}

TEST_P(LeasesTest, JudgesHeldLeases) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", Losses(0, 1));
  lease.Send("a", Losses(1, 2));
  const auto drop = [&](absl::string_view name, absl::string_view incarnation, uint64_t first) {
    return Value(store().CheckLease(name, incarnation, first)).drop;
  };
  EXPECT_FALSE(drop("l", "i1", 1));
  EXPECT_FALSE(drop("l", "i1", 3));
  EXPECT_EQ(Value(store().CheckLease("l", "i1", 3)).acked, 2u);
  EXPECT_TRUE(drop("l", "i1", 4));  // this file never had event 3: a restored backup
  EXPECT_TRUE(drop("l", "i2", 3));
  EXPECT_TRUE(drop("other", "i1", 1));
}

TEST_P(LeasesTest, RewindsToTheResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", StartedEvent{});
  first.Send("a", MakePoints(30, {MakeColumn("train/loss", {0, 10, 20}, {9, 8, 7}),
                                  MakeColumn("grad", {0}, {1})}));
  first.Send("a", Checkpoint(30));
  first.Send("a", Resume(30));
  const auto summaries = Value(store().Summaries({"a"}));
  first.Send("a", MakePoints(60, {MakeColumn("train/loss", {30, 40}, {-5, NAN}),
                                  MakeColumn("eval/loss", {50}, {1})}));
  first.Send("a", Checkpoint(60));
  ASSERT_TRUE(store().EndLease("l1", LeaseEnd::kLost, {}, "silent").ok());
  EXPECT_EQ(StateOf("a"), RunState::kQueued);

  Lease second(&store(), "l2", {"a"});
  ASSERT_THAT(second.granted(), SizeIs(1));
  EXPECT_EQ(second.granted()[0].resume_step, 30u);
  EXPECT_EQ(second.granted()[0].resume_blob, Sha256Hex("state at 30"));
  EXPECT_EQ(Run("a").step, 30u);
  EXPECT_EQ(Run("a").device_time, 1000);
  EXPECT_THAT(Series("a", "train/loss"), ElementsAre(Pair(0, 9), Pair(10, 8), Pair(20, 7)));
  EXPECT_THAT(Series("a", "eval/loss"), IsEmpty());
  EXPECT_THAT(Value(store().ListArtifacts("a")), SizeIs(1));
  const auto again = Value(store().Summaries({"a"}));
  ASSERT_THAT(again[0], SizeIs(2));
  EXPECT_EQ(again[0][1].key, "train/loss");
  EXPECT_EQ(again[0][1].count, summaries[0][1].count);
  EXPECT_EQ(again[0][1].min, 7);
  EXPECT_EQ(again[0][1].nonfinite, 0u);
  EXPECT_FALSE(again[0][1].first_nonfinite_step.has_value());

  second.Send("a", StartedEvent{});
  second.Send("a", MakePoints(60, {MakeColumn("train/loss", {30, 40}, {6, 5})}));
  EXPECT_THAT(Series("a", "train/loss"),
              ElementsAre(Pair(0, 9), Pair(10, 8), Pair(20, 7), Pair(30, 6), Pair(40, 5)));
  EXPECT_EQ(History("a").back(), "resumed");
}

TEST_P(LeasesTest, RewindsToTheStartWithoutAResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", Losses(0, 30));
  first.Send("a", Checkpoint(30));
  first.Send("a", ReleasedEvent{});
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(30));  // until somebody takes it up
  Lease second(&store(), "l2", {"a"});
  EXPECT_EQ(second.granted()[0].resume_blob, "");
  EXPECT_EQ(Run("a").step, 0u);
  EXPECT_EQ(Run("a").device_time, 0);
  EXPECT_THAT(Series("a", "train/loss"), IsEmpty());
  EXPECT_THAT(Value(store().Summaries({"a"}))[0], IsEmpty());
  EXPECT_THAT(Value(store().ListArtifacts("a")), IsEmpty());
  second.Send("a", Losses(0, 5));
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(5));
}

TEST_P(LeasesTest, KeepsOnlyTheNewestResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", Losses(0, 10));
  first.Send("a", Resume(10));
  first.Send("a", Losses(10, 20));
  first.Send("a", Resume(20));
  first.Send("a", ReleasedEvent{});
  Lease second(&store(), "l2", {"a"});
  EXPECT_EQ(second.granted()[0].resume_step, 20u);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(20));
}

TEST_P(LeasesTest, RestartsFinishedWorkOnlyByANewGeneration) {
  Submit({"a"});
  Train({"a"});
  EXPECT_TRUE(Submit({"a"}).cells[0].reused);
  Lease lease(&store(), "l", {"a"});
  EXPECT_THAT(lease.granted(), IsEmpty());
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(3));
}

TEST_P(LeasesTest, ContinuesACancelledRunFromItsResumeState) {
  const std::string id = Submit({"a"}).id;
  Lease first(&store(), "l1", {"a"});
  first.Send("a", Losses(0, 10));
  first.Send("a", Resume(10));
  ASSERT_TRUE(store().CancelExperiment(id).ok());
  Submit({"a"});
  Lease second(&store(), "l2", {"a"});
  EXPECT_EQ(second.granted()[0].resume_step, 10u);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(10));
}

TEST_P(LeasesTest, FailsAtTheThirdFailureWithoutProgress) {
  const std::string id = Submit({"a"}).id;
  FailOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  EXPECT_EQ(Run("a").failures, 1u);
  FailOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  FailOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
  EXPECT_EQ(Run("a").failure, "boom");
  EXPECT_EQ(Run("a").failures, 3u);
  EXPECT_EQ(Run("a").end_time, now());
  EXPECT_EQ(Value(store().ListCells(id, 0, 1))[0].failure, "boom");
  const auto history = Value(store().RunEvents("a"));
  EXPECT_EQ(history.back().kind, "failed");
  EXPECT_EQ(history.back().message, "boom");
  EXPECT_EQ(history.back().worker, "cpu-train");
  EXPECT_EQ(Value(store().GetExperiment(id)).state, ExperimentState::kEnded);
  ExpectConsistent(id);
}

TEST_P(LeasesTest, ForgivesFailuresAfterProgress) {
  Submit({"a"});
  FailOnce("a");
  LoseOnce("a");
  {
    Lease lease(&store(), Name(), {"a"});
    lease.Send("a", Resume(10));
    EXPECT_EQ(Run("a").failures, 0u);
    EXPECT_EQ(Run("a").losses, 0u);
    lease.Send("a", FailedEvent{"boom"});
  }
  {
    Lease lease(&store(), Name(), {"a"});
    lease.Send("a", Resume(10));  // where it was: no progress
    EXPECT_EQ(Run("a").failures, 1u);
    lease.Send("a", FailedEvent{"boom"});
  }
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  FailOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
}

TEST_P(LeasesTest, FailsAtTheTwentiethLossInARow) {
  const std::string id = Submit({"a"}).id;
  for (uint32_t i = 0; i < kLossesWithoutProgress - 1; ++i) LoseOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  EXPECT_EQ(Run("a").losses, 19u);
  EXPECT_EQ(Run("a").failures, 0u);
  LoseOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
  EXPECT_THAT(Run("a").failure, HasSubstr("20 times"));
  EXPECT_THAT(Run("a").failure, HasSubstr("silent"));
  ExpectConsistent(id);
}

TEST_P(LeasesTest, ChargesADeathToTheRunsThatWereStepping) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"});
  ASSERT_TRUE(store().EndLease("l", LeaseEnd::kDied, {"a"}, "killed by SIGSEGV").ok());
  EXPECT_EQ(Run("a").failures, 1u);
  EXPECT_EQ(Run("b").failures, 0u);
  EXPECT_EQ(StateOf("b"), RunState::kQueued);
  EXPECT_EQ(Value(store().RunEvents("a")).back().message, "killed by SIGSEGV");
  EXPECT_EQ(History("b").back(), "released");
  EXPECT_FALSE(Value(store().LeaseExists("l")));
  EXPECT_TRUE(Value(store().CheckLease("l", "i1", 1)).drop);

  Lease all(&store(), "l2", {"a", "b"});
  ASSERT_TRUE(store().EndLease("l2", LeaseEnd::kDied, {}, "exit code 1").ok());
  EXPECT_EQ(Run("a").failures, 2u);
  EXPECT_EQ(Run("b").failures, 1u);
}

TEST_P(LeasesTest, ChargesNothingForReleases) {
  Submit({"a", "b"});
  for (int i = 0; i < 30; ++i) {
    Lease lease(&store(), Name(), {"a", "b"});
    ASSERT_THAT(lease.granted(), SizeIs(2));
    EXPECT_EQ(lease.Send("a", ReleasedEvent{}), Applied::kApplied);
    ASSERT_TRUE(store().EndLease(lease.name(), LeaseEnd::kReleased, {}, "drained").ok());
  }
  for (const char* run : {"a", "b"}) {
    EXPECT_EQ(StateOf(run), RunState::kQueued);
    EXPECT_EQ(Run(run).failures, 0u);
    EXPECT_EQ(Run(run).losses, 0u);
  }
  EXPECT_TRUE(store().EndLease("lease-1", LeaseEnd::kReleased, {}, "again").ok());
}

TEST_P(LeasesTest, LeavesEndedRunsAloneWhenALeaseEnds) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"});
  lease.Send("a", FinishedEvent{false, 100});
  ASSERT_TRUE(store().EndLease("l", LeaseEnd::kLost, {}, "gone").ok());
  EXPECT_EQ(StateOf("a"), RunState::kDone);
  EXPECT_EQ(StateOf("b"), RunState::kQueued);
  EXPECT_EQ(lease.Send("b", Losses(0, 5)), Applied::kNoLease);
}

TEST_P(LeasesTest, AppliesNothingOfACallWithAnInvalidEvent) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent good = lease.Next("a", Losses(0, 10));
  LeaseEvent bad = lease.Next("a", Losses(10, 20));
  std::get<PointsEvent>(bad.event).step = 101;
  const auto refused = store().Apply("i1", {good, bad});
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("run a: step: 101; the run has 100 steps"));
  EXPECT_EQ(Run("a").step, 0u);
  EXPECT_THAT(Series("a", "train/loss"), IsEmpty());
  EXPECT_EQ(lease.Send(good), Applied::kApplied);
}

TEST_P(LeasesTest, NeedsPublishedBlobsOnFile) {
  if (!on_file()) GTEST_SKIP() << "in memory there are no blobs";
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const std::string missing = Sha256Hex("never published");
  EXPECT_EQ(CodeOf(store().Apply("i1", {{"l", 1, "a", CheckpointEvent{5, missing, 1}}})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(store().Apply("i1", {{"l", 1, "a", ResumeStateEvent{5, "../lock", 1}}})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Value(store().ListArtifacts("a")), IsEmpty());
}

TEST_P(LeasesTest, ReplacesACheckpointAtTheSameStep) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", Checkpoint(5));
  lease.Send("a", CheckpointEvent{5, Publish("other"), 5});
  const auto artifacts = Value(store().ListArtifacts("a"));
  ASSERT_THAT(artifacts, SizeIs(1));
  EXPECT_EQ(artifacts[0].blob, Sha256Hex("other"));
}

TEST_P(LeasesTest, AppliesAsynchronously) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  Mutex mutex;
  CondVar changed;
  std::vector<absl::StatusOr<std::vector<Applied>>> answers;
  const auto done = [&](absl::StatusOr<std::vector<Applied>> answer) {
    MutexLock lock(&mutex);
    answers.push_back(std::move(answer));
    changed.Signal();
  };
  store().ApplyAsync("i1", {lease.Next("a", Losses(0, 10))}, done);
  store().ApplyAsync("i1", {lease.Next("a", Losses(10, 20))}, done);
  LeaseEvent bad = lease.Next("a", Losses(10, 20));
  store().ApplyAsync("i1", {bad}, done);
  MutexLock lock(&mutex);
  while (answers.size() < 3) changed.Wait(&mutex);
  EXPECT_THAT(Value(answers[0]), ElementsAre(Applied::kApplied));
  EXPECT_THAT(Value(answers[1]), ElementsAre(Applied::kApplied));
  EXPECT_EQ(CodeOf(answers[2]), absl::StatusCode::kInvalidArgument);
}

TEST_P(LeasesTest, MeasuresStepTimes) {
  NewExperiment wanted = MakeExperiment({"a", "b", "c"});
  wanted.runs[2].shape = "other";
  const std::string id = Create(wanted).id;
  EXPECT_FALSE(Value(store().MeasuredStepTime("shape")).has_value());
  Lease lease(&store(), "l", {"a", "b", "c"});
  PointsEvent points = MakePoints(100, {});
  points.busy = 1000;
  lease.Send("a", points);
  lease.Send("a", FinishedEvent{false, 100});
  points.busy = 3000;
  lease.Send("b", points);
  EXPECT_EQ(Value(store().MeasuredStepTime("shape")), 10.0);
  lease.Send("b", FinishedEvent{false, 100});
  EXPECT_EQ(Value(store().MeasuredStepTime("shape")), 20.0);
  EXPECT_FALSE(Value(store().MeasuredStepTime("other")).has_value());
  lease.Send("c", FinishedEvent{false, 100});
  ASSERT_TRUE(store().DeleteExperiment(id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(Value(store().MeasuredStepTime("shape")), 20.0);  // outlives the runs
}

// A lease that goes on after the store went back in time must not be continued, and the run must
// end with one consistent history.
TEST(RestoredBackupTest, DropsLeasesWhoseEventsItNeverHad) {
  auto store = Value(Store::Open({}));
  ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"a"})).ok());
  Lease lease(store.get(), "l", {"a"});
  lease.Send("a", MakePoints(1, {MakeColumn("x", {0}, {1})}));
  const std::string backup = Value(store->Image());
  lease.Send("a", MakePoints(2, {MakeColumn("x", {1}, {2})}));
  StoreOptions options;
  options.image = backup;
  auto restored = Value(Store::Open(options));
  EXPECT_EQ(restored->generation(), store->generation());
  EXPECT_TRUE(Value(restored->CheckLease("l", "i1", 3)).drop);
  EXPECT_FALSE(Value(restored->CheckLease("l", "i1", 2)).drop);
  EXPECT_EQ(Value(restored->GetRun("a")).step, 1u);
  EXPECT_EQ(Value(store->GetRun("a")).step, 2u);
}

}  // namespace
}  // namespace ablate::storage
