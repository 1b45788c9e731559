// Tests grants, events and decisions: every transition, and the invariants from both sides.
#include <utility>

#include "base/mutex.h"
#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeasesTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(, LeasesTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(LeasesTest, GrantsQueuedRunsOnly) {
  const std::string id = Submit({"a", "b", "done"}).id;
  Train({"done"});
  const uint64_t before = store().change_number();
  Lease lease(&store(), "l1", {"a", "done", "unknown", "a", "b"});
  ASSERT_THAT(lease.granted(), SizeIs(2));
  const GrantedRun& run = lease.granted()[0];
  EXPECT_EQ(run.spec, "spec of a");
  EXPECT_EQ(run.resume_blob, "");
  EXPECT_EQ(run.resume_step, 0u);
  EXPECT_EQ(StateOf("a"), RunState::kLeased);
  EXPECT_EQ(Run("a").worker, "cpu-train");
  EXPECT_EQ(Run("a").trainer, "torch");
  EXPECT_EQ(Run("a").device, "2 cores");
  EXPECT_EQ(Run("a").build, "0.1");
  EXPECT_GT(store().change_number(), before);
  EXPECT_FALSE(Run("a").begun);
  ExpectConsistent(id);
  const auto leases = Value(store().ListLeases());
  ASSERT_THAT(leases, SizeIs(2));  // the finished one only answers repetitions
  EXPECT_EQ(leases[0].lease, "l1");
  EXPECT_EQ(leases[0].acked, 0u);
  EXPECT_EQ(leases[0].holder.incarnation, "i1");
  EXPECT_EQ(leases[0].run, "a");
  EXPECT_EQ(leases[1].run, "b");
  EXPECT_TRUE(Value(store().FindLeaseRights("l1")).has_value());
}

TEST_P(LeasesTest, ShowsARunAsTrainingFromItsFirstEventOn) {
  const std::string id = Submit({"a", "b", "a"}).id;
  const std::string other = Submit({"a"}).id;
  const auto running = [&](const std::string& experiment) {
    ExpectConsistent(experiment);
    return Value(store().GetExperiment(experiment)).counts.running;
  };
  for (const int round : {1, 2, 3}) {
    Lease lease(&store(), absl::StrCat("l", round), {"a", "b"});
    EXPECT_EQ(running(id), 0u);
    lease.Send("a", StartedEvent{});
    lease.Send("a", MakePoints(round, {}));
    EXPECT_TRUE(Run("a").begun);
    EXPECT_EQ(Value(store().ListCells(id, 0, 1)).at(0).state, RunState::kLeased);
    EXPECT_EQ(running(id), 2u) << "cells";
    EXPECT_EQ(running(other), 1u);
    lease.Send("a", ReleasedEvent{});
    lease.Send("b", ReleasedEvent{});
    EXPECT_EQ(running(id), 0u);
  }
  Lease lease(&store(), "l4", {"a", "b"});
  lease.Send("a", StartedEvent{});
  ASSERT_TRUE(store().CancelExperiment(other).ok());
  ASSERT_TRUE(store().CancelExperiment(id).ok());
  EXPECT_EQ(running(id), 0u);
  EXPECT_EQ(Value(store().GetExperiment(id)).counts.cancelled, 3u);
}

TEST_P(LeasesTest, MakesNoLeaseWhenNothingIsQueued) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  Lease second(&store(), "l2", {"a"});
  EXPECT_THAT(second.granted(), IsEmpty());
  EXPECT_FALSE(Value(store().FindLeaseRights("l2")).has_value());
}

TEST_P(LeasesTest, RefusesALeaseIdThatIsTaken) {
  Submit({"a", "b"});
  Lease first(&store(), "l1", {"a"});
  const auto second = GrantAndWait(store(), {{"l1", {"w", "i", "d", "b", "t", "e", 0}, "b"}});
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(StateOf("b"), RunState::kQueued);
}

TEST_P(LeasesTest, MakesSeveralLeasesOrNone) {
  Submit({"a", "b", "c"});
  const LeaseHolder holder{"w", "i", "d", "b", "t", "e", 0};
  EXPECT_FALSE(GrantAndWait(store(), {{"l1", holder, "a"}, {"l1", holder, "b"}}).ok());
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  const auto granted =
      Value(GrantAndWait(store(), {{"l1", holder, "a"}, {"l2", holder, "a"}, {"l3", holder, "b"}}));
  ASSERT_THAT(granted, SizeIs(3));
  EXPECT_TRUE(granted[0].has_value());
  EXPECT_FALSE(granted[1].has_value()) << "the run was taken";
  ASSERT_TRUE(granted[2].has_value());
  EXPECT_EQ(granted[2]->spec, "spec of b");
  EXPECT_FALSE(Value(store().FindLeaseRights("l2")).has_value());
}

TEST_P(LeasesTest, FollowsARunToItsEnd) {
  const std::string id = Submit({"a"}).id;
  Lease lease(&store(), "l", {"a"});
  Advance(10);
  const Micros started = now();
  EXPECT_EQ(lease.Send("a", StartedEvent{}), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", MakeLosses(0, 40)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", Checkpoint(40)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", Resume(40)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", MakeLosses(40, 100)), Applied::kApplied);
  EXPECT_EQ(Run("a").step, 100u);
  Advance(10);
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 100}), Applied::kApplied);
  const RunRecord run = Run("a");
  EXPECT_EQ(run.state, RunState::kDone);
  EXPECT_EQ(run.start_time, started);
  EXPECT_EQ(run.end_time, now());
  EXPECT_EQ(run.spent.device_time, 2000);
  EXPECT_EQ(run.spent.contended_time, 100);
  EXPECT_EQ(run.spent.tokens, 14u);
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
  lease.Send("a", MakeLosses(0, 12));
  lease.Send("a", FinishedEvent{true, 12});
  EXPECT_EQ(StateOf("a"), RunState::kDiverged);
  EXPECT_EQ(Run("a").step, 12u);
  EXPECT_EQ(History("a").back(), "diverged");
  ExpectConsistent(id);
}

TEST_P(LeasesTest, IsDoneOnlyAtTheLastStep) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", MakeLosses(0, 12));
  const auto refuse = [&](FinishedEvent event) {
    const auto refused = ApplyAndWait(store(), "i1", {{lease.name(), lease.sent() + 1, event}});
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(StateOf("a"), RunState::kLeased);
    return std::string(refused.status().message());
  };
  EXPECT_EQ(refuse({false, 12}), "run a: finished.step: 12; expected 100");
  EXPECT_EQ(refuse({false, 101}), "run a: step: 101; expected at most 100");
  EXPECT_EQ(refuse({true, 11}), "run a: step: 11; expected at least 12, which the run has reached");
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 100}), Applied::kApplied);
}

TEST_P(LeasesTest, AppliesEachEventOnce) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent first = lease.Next("a", MakeLosses(0, 10));
  const LeaseEvent second = lease.Next("a", MakeLosses(10, 20));
  const LeaseEvent third = lease.Next("a", MakeLosses(20, 30));
  EXPECT_EQ(lease.Send(second), Applied::kGap);
  EXPECT_EQ(lease.Send(first), Applied::kApplied);
  EXPECT_EQ(lease.Send(first), Applied::kRepeated);
  EXPECT_EQ(lease.Send(third), Applied::kGap);
  EXPECT_THAT(
      Value(ApplyAndWait(store(), "i1", {first, second, second, third})),
      ElementsAre(Applied::kRepeated, Applied::kApplied, Applied::kRepeated, Applied::kApplied));
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(30));
  EXPECT_EQ(Value(store().Summaries({"a"}))[0].keys[0].count, 30u);
  EXPECT_EQ(Run("a").spent.device_time, 3000);
}

TEST_P(LeasesTest, DropsEventsOfOtherWorkers) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent event = lease.Next("a", MakeLosses(0, 10));
  EXPECT_THAT(Value(ApplyAndWait(store(), "i2", {event})), ElementsAre(Applied::kNoLease));
  LeaseEvent unknown = event;
  unknown.lease = "nothing";
  EXPECT_THAT(Value(ApplyAndWait(store(), "i1", {unknown})), ElementsAre(Applied::kNoLease));
  EXPECT_EQ(Run("a").step, 0u);
  EXPECT_EQ(lease.Send(event), Applied::kApplied);
}

TEST_P(LeasesTest, DropsTheLeaseOfACancelledRun) {
  const std::string first = Submit({"a"}).id;
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent points = lease.Next("a", MakeLosses(0, 10));
  lease.Send(points);
  ASSERT_THAT(Value(store().CancelExperiment(first)).withdrawals, SizeIs(1));
  EXPECT_EQ(lease.Send(points), Applied::kNoLease);
  EXPECT_EQ(lease.Send("a", MakeLosses(10, 20)), Applied::kNoLease);
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 100}), Applied::kNoLease);
  EXPECT_EQ(StateOf("a"), RunState::kCancelled);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(10));
  EXPECT_TRUE(Value(store().CheckLease("l", "i1", 2)).drop);
}

TEST_P(LeasesTest, AcknowledgesRepetitionsAfterTheEnd) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent end = lease.Next("a", FinishedEvent{false, 100});
  EXPECT_EQ(lease.Send(end), Applied::kApplied);
  Reopen();
  EXPECT_THAT(Value(ApplyAndWait(store(), "i1", {end})), ElementsAre(Applied::kRepeated));
  const HeldLeaseDecision decision = Value(store().CheckLease("l", "i1", 1));
  EXPECT_FALSE(decision.drop);
  EXPECT_EQ(decision.acked, 1u);
  EXPECT_EQ(CodeOf(store().Maintain()), absl::StatusCode::kOk);
  const LeaseEvent late = lease.Next("a", MakeLosses(0, 10));
  EXPECT_THAT(Value(ApplyAndWait(store(), "i1", {end, late})),
              ElementsAre(Applied::kRepeated, Applied::kNoLease));
  EXPECT_FALSE(Value(store().FindLeaseRights("l")).has_value());
}

TEST_P(LeasesTest, AcknowledgesRepetitionsUntilTheNextGrant) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  const LeaseEvent end = first.Next("a", FailedEvent{"boom"});
  EXPECT_EQ(first.Send(end), Applied::kApplied);
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  EXPECT_EQ(first.Send(end), Applied::kRepeated);
  Lease second(&store(), "l2", {"a"});
  EXPECT_EQ(first.Send(end), Applied::kNoLease);
  EXPECT_EQ(Run("a").failures, 1u);
  EXPECT_EQ(second.Send("a", MakeLosses(0, 10)), Applied::kApplied);
}

TEST_P(LeasesTest, DecidesOnHeldLeases) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", MakeLosses(0, 1));
  lease.Send("a", MakeLosses(1, 2));
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

TEST_P(LeasesTest, AppliesNothingOfACallWithAnInvalidEvent) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const LeaseEvent good = lease.Next("a", MakeLosses(0, 10));
  LeaseEvent bad = lease.Next("a", MakeLosses(10, 20));
  std::get<PointsEvent>(bad.event).step = 101;
  const auto refused = ApplyAndWait(store(), "i1", {good, bad});
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("run a: step: 101; expected at most 100"));
  EXPECT_EQ(Run("a").step, 0u);
  EXPECT_THAT(Series("a", "train/loss"), IsEmpty());
  EXPECT_EQ(lease.Send(good), Applied::kApplied);
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
  store().ApplyAsync("i1", {lease.Next("a", MakeLosses(0, 10))}, done);
  store().ApplyAsync("i1", {lease.Next("a", MakeLosses(10, 20))}, done);
  LeaseEvent bad = lease.Next("a", MakeLosses(10, 20));
  store().ApplyAsync("i1", {bad}, done);
  MutexLock lock(&mutex);
  while (answers.size() < 3) changed.Wait(&mutex);
  EXPECT_THAT(Value(answers[0]), ElementsAre(Applied::kApplied));
  EXPECT_THAT(Value(answers[1]), ElementsAre(Applied::kApplied));
  EXPECT_EQ(CodeOf(answers[2]), absl::StatusCode::kInvalidArgument);
}

TEST_P(LeasesTest, RefusesCheckpointsFarBeyondWhatTheRunWasToLeave) {
  NewExperiment experiment = MakeExperiment({"a"});
  experiment.runs[0].expected_bytes = 1000;
  Create(experiment);
  Lease lease(&store(), "l1", {"a"});
  EXPECT_EQ(lease.Send("a", Checkpoint(10)), Applied::kApplied);
  const std::string large(17 << 20, 'x');
  // Whatever it reports as size: if there are blobs, their size is used.
  const CheckpointEvent beyond{20, Publish(large), store().blobs() == nullptr ? large.size() : 1};
  const auto refused = ApplyAndWait(store(), "i1", {lease.Next("a", beyond)});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("bytes in all; expected about 1000"));
}

}  // namespace
}  // namespace ablate::storage
