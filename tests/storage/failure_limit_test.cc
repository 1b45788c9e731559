// Tests experiments that are cancelled once too many of their runs have failed.
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FailureLimitTest : public StoreTest {
 protected:
  FailureLimitTest() { Listen(); }

  void Listen() {
    store().OnWithdrawn([this](const std::vector<Withdrawal>& withdrawals) {
      for (const Withdrawal& one : withdrawals) withdrawn_.push_back(one.lease);
    });
  }
  std::string SubmitWithLimit(const std::vector<std::string>& runs, uint32_t max_failed) {
    NewExperiment experiment = MakeExperiment(runs);
    experiment.max_failed = max_failed;
    return Create(experiment).id;
  }
  ExperimentRecord Experiment(const std::string& id) { return Value(store().GetExperiment(id)); }

  const FailedEvent final_ = {"exit code 1", /*is_final=*/true};
  std::vector<std::string> withdrawn_;  // leases, in order
};
INSTANTIATE_TEST_SUITE_P(, FailureLimitTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(FailureLimitTest, CancelsWhenTheLimitIsReached) {
  const std::string id = SubmitWithLimit({"a", "b", "c", "d"}, 2);
  Lease lease(&store(), "l", {"a", "b", "c"});
  lease.Send("a", final_);
  EXPECT_EQ(Experiment(id).state, ExperimentState::kActive);
  EXPECT_THAT(withdrawn_, IsEmpty());
  Advance(5);
  EXPECT_EQ(lease.Send("b", final_), Applied::kApplied);
  const ExperimentRecord record = Experiment(id);
  EXPECT_EQ(record.state, ExperimentState::kCancelled);
  EXPECT_EQ(record.why_cancelled, "2 runs failed; limits.failures is 2");
  EXPECT_EQ(record.end_time, now());
  EXPECT_EQ(record.counts.failed, 2u);
  EXPECT_EQ(record.counts.cancelled, 2u);
  EXPECT_THAT(withdrawn_, ElementsAre(lease.NameOf("c")));
  EXPECT_EQ(lease.Send("c", StartedEvent{}), Applied::kNoLease);
  EXPECT_EQ(StateOf("d"), RunState::kCancelled);
  Reopen();
  EXPECT_EQ(Experiment(id).why_cancelled, record.why_cancelled);
  EXPECT_THAT(Value(store().ListLeases()), IsEmpty());
}

TEST_P(FailureLimitTest, CountsOnAfterARestart) {
  const std::string id = SubmitWithLimit({"a", "b", "c"}, 2);
  Lease(&store(), "l1", {"a"}).Send("a", final_);
  Reopen();
  Listen();
  Lease(&store(), "l2", {"b"}).Send("b", final_);
  EXPECT_EQ(Experiment(id).state, ExperimentState::kCancelled);
  EXPECT_EQ(StateOf("c"), RunState::kCancelled);
}

TEST_P(FailureLimitTest, CountsOnlyRunsThatAreNotTriedAgain) {
  const std::string id = SubmitWithLimit({"a", "b"}, 1);
  for (uint32_t i = 1; i < kMaxFailuresWithoutProgress; ++i) {
    Lease(&store(), absl::StrCat("l", i), {"a"}).Send("a", FailedEvent{"boom"});
    EXPECT_EQ(Experiment(id).state, ExperimentState::kActive);
  }
  Lease(&store(), "last", {"a"}).Send("a", FailedEvent{"boom"});
  EXPECT_EQ(Experiment(id).state, ExperimentState::kCancelled);
  EXPECT_EQ(Experiment(id).why_cancelled, "1 run failed; limits.failures is 1");
}

TEST_P(FailureLimitTest, HasNoLimitUnlessItIsGiven) {
  const std::string id = SubmitWithLimit({"a", "b"}, 0);
  Lease(&store(), "l", {"a"}).Send("a", final_);
  EXPECT_EQ(Experiment(id).state, ExperimentState::kActive);
}

TEST_P(FailureLimitTest, LeavesRunsThatOthersNeed) {
  const std::string limited = SubmitWithLimit({"a", "shared", "running"}, 1);
  const std::string other = Submit({"a", "shared", "running"}).id;
  Lease lease(&store(), "l", {"a", "running"});
  lease.Send("running", StartedEvent{});
  lease.Send("a", final_);
  EXPECT_EQ(Experiment(limited).state, ExperimentState::kCancelled);
  EXPECT_EQ(Experiment(other).state, ExperimentState::kActive);
  EXPECT_EQ(StateOf("shared"), RunState::kQueued);
  EXPECT_EQ(StateOf("running"), RunState::kLeased);
  EXPECT_THAT(withdrawn_, IsEmpty());
  ExpectConsistent(other);
}

TEST_P(FailureLimitTest, CancelsAllThatReachTheirLimitTogether) {
  const std::string first = SubmitWithLimit({"a", "b"}, 1);
  const std::string second = SubmitWithLimit({"a", "b"}, 1);
  Lease lease(&store(), "l", {"a", "b"});
  lease.Send("a", final_);
  EXPECT_EQ(Experiment(first).state, ExperimentState::kCancelled);
  EXPECT_EQ(Experiment(second).state, ExperimentState::kCancelled);
  EXPECT_EQ(StateOf("b"), RunState::kCancelled);
  EXPECT_THAT(withdrawn_, ElementsAre(lease.NameOf("b")));
}

// The outcome doesn't depend on the order in which runs end.
TEST_P(FailureLimitTest, CancelsEvenWithTheLastRun) {
  const std::string id = SubmitWithLimit({"a", "b"}, 1);
  Train({"a"});
  Lease(&store(), "l", {"b"}).Send("b", final_);
  EXPECT_EQ(Experiment(id).state, ExperimentState::kCancelled);
  EXPECT_EQ(Experiment(id).counts.done, 1u);
}

TEST_P(FailureLimitTest, CountsFromZeroWhenSubmittedAgain) {
  SubmitWithLimit({"a", "b"}, 1);
  Lease(&store(), "l", {"a"}).Send("a", final_);
  const std::string again = SubmitWithLimit({"a", "b"}, 1);
  EXPECT_EQ(Experiment(again).state, ExperimentState::kActive);
  EXPECT_EQ(Experiment(again).counts.queued, 2u);
  Train({"a", "b"});
  EXPECT_EQ(Experiment(again).state, ExperimentState::kEnded);
  EXPECT_EQ(Experiment(again).why_cancelled, "");
}

TEST_P(FailureLimitTest, WithdrawsALeaseOfTheSameGrant) {
  NewExperiment experiment = MakeExperiment({"a", "b"});
  experiment.runs[1].numerics_version = 4;  // nobody can train it
  experiment.max_failed = 1;
  const std::string id = Create(experiment).id;
  const LeaseHolder holder = HolderIn("e", /*numerics_version=*/5);
  ASSERT_TRUE(GrantAndWait(store(), {{"l1", holder, "a"}, {"l2", holder, "b"}}).ok());
  EXPECT_EQ(StateOf("b"), RunState::kFailed);
  EXPECT_EQ(Experiment(id).state, ExperimentState::kCancelled);
  EXPECT_THAT(withdrawn_, ElementsAre("l1"));
}

TEST_P(FailureLimitTest, IsUndoneWithItsRequest) {
  const std::string id = SubmitWithLimit({"a", "b"}, 1);
  Submit({"other"});
  Lease lease(&store(), "l", {"a", "b", "other"});
  const LeaseEvent failed = lease.Next("a", final_);
  const LeaseEvent wrong = lease.Next("other", Resume(kSteps + 1));
  const auto refused = ApplyAndWait(store(), "i1", {failed, wrong});
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(Experiment(id).state, ExperimentState::kActive);
  EXPECT_THAT(withdrawn_, IsEmpty());
  EXPECT_EQ(lease.Send(failed), Applied::kApplied);
  EXPECT_THAT(withdrawn_, SizeIs(1));
}

}  // namespace
}  // namespace ablate::storage
