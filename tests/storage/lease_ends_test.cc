// Tests how leases end, the cost for their runs, and which progress resets it.
#include "absl/strings/str_cat.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class LeaseEndsTest : public StoreTest {
 protected:
  // Returns a new lease's name.
  std::string Name() { return absl::StrCat("lease-", ++names_); }
  // Fails the run once; it must be queued.
  void FailOnce(const std::string& run) {
    Lease lease(&store(), Name(), {run});
    ASSERT_EQ(lease.Send(run, FailedEvent{"boom"}), Applied::kApplied);
  }
  void LoseOnce(const std::string& run) {
    Lease lease(&store(), Name(), {run});
    ASSERT_THAT(lease.granted(), SizeIs(1));
    ASSERT_TRUE(EndLeaseAndWait(store(), lease.name(), {LeaseEnd::kLost, "silent"}).ok());
  }

 private:
  int names_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, LeaseEndsTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(LeaseEndsTest, FailsAtTheThirdFailureWithoutProgress) {
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

TEST_P(LeaseEndsTest, ForgivesFailuresAfterProgress) {
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

TEST_P(LeaseEndsTest, FailsAtTheTwentiethLossInARow) {
  const std::string id = Submit({"a"}).id;
  for (uint32_t i = 0; i < kMaxLossesWithoutProgress - 1; ++i) LoseOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  EXPECT_EQ(Run("a").losses, 19u);
  EXPECT_EQ(Run("a").failures, 0u);
  LoseOnce("a");
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
  EXPECT_THAT(Run("a").failure, HasSubstr("20 times"));
  EXPECT_THAT(Run("a").failure, HasSubstr("silent"));
  ExpectConsistent(id);
}

TEST_P(LeaseEndsTest, CountsADeathAsAFailure) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  ASSERT_TRUE(EndLeaseAndWait(store(), "l", {LeaseEnd::kDied, "killed by SIGSEGV"}).ok());
  EXPECT_EQ(Run("a").failures, 1u);
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  EXPECT_EQ(Value(store().RunEvents("a")).back().message, "killed by SIGSEGV");
  EXPECT_FALSE(Value(store().FindLeaseRights("l")).has_value());
  EXPECT_TRUE(Value(store().CheckLease("l", "i1", 1)).drop);
  EXPECT_EQ(lease.Send("a", MakeLosses(0, 5)), Applied::kNoLease);
}

TEST_P(LeaseEndsTest, CutsLongMessagesBetweenCharacters) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", FailedEvent{std::string(3999, 'x') + "äöü"});
  EXPECT_EQ(Value(store().RunEvents("a")).back().message, std::string(3999, 'x'));
}

TEST_P(LeaseEndsTest, ChargesNothingForReleases) {
  Submit({"a", "b"});
  for (int i = 0; i < 30; ++i) {
    Lease lease(&store(), Name(), {"a", "b"});
    ASSERT_THAT(lease.granted(), SizeIs(2));
    EXPECT_EQ(lease.Send("a", ReleasedEvent{}), Applied::kApplied);
    const LeaseEnding drained{LeaseEnd::kReleased, "drained"};
    ASSERT_TRUE(EndLeaseAndWait(store(), lease.NameOf("b"), drained).ok());
  }
  for (const char* run : {"a", "b"}) {
    EXPECT_EQ(StateOf(run), RunState::kQueued);
    EXPECT_EQ(Run(run).failures, 0u);
    EXPECT_EQ(Run(run).losses, 0u);
  }
  EXPECT_TRUE(EndLeaseAndWait(store(), "lease-1", {LeaseEnd::kReleased, "again"}).ok());
}

TEST_P(LeaseEndsTest, LeavesEndedRunsAloneWhenALeaseEnds) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", FinishedEvent{false, 100});
  ASSERT_TRUE(EndLeaseAndWait(store(), "l", {LeaseEnd::kLost, "gone"}).ok());
  EXPECT_EQ(StateOf("a"), RunState::kDone);
}

TEST_P(LeaseEndsTest, MeasuresStepTimes) {
  NewExperiment wanted = MakeExperiment({"a", "b", "c"});
  wanted.runs[2].shape = "other";
  const std::string id = Create(wanted).id;
  EXPECT_FALSE(Value(store().MeasuredStepTime("shape")).has_value());
  Lease lease(&store(), "l", {"a", "b", "c"});
  PointsEvent points = MakePoints(100, {});
  points.spent.device_time = 1000;
  lease.Send("a", points);
  lease.Send("a", FinishedEvent{false, 100});
  points.spent.device_time = 3000;
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

TEST_P(LeaseEndsTest, MeasuresStepTimesOfTrainingRunsWhileNoneHasFinished) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"});
  PointsEvent points = MakePoints(5, {});
  points.spent.device_time = 900'000;
  lease.Send("a", points);
  EXPECT_FALSE(Value(store().MeasuredStepTime("shape")).has_value()) << "too short to judge";
  points = MakePoints(10, {});
  points.spent.device_time = 1'100'000;
  lease.Send("a", points);
  EXPECT_EQ(Value(store().MeasuredStepTime("shape")), 200'000.0);
  EXPECT_FALSE(Value(store().MeasuredStepTime("other")).has_value());
  points = MakePoints(100, {});
  points.spent.device_time = 1000;
  lease.Send("b", points);
  lease.Send("b", FinishedEvent{false, 100});
  EXPECT_EQ(Value(store().MeasuredStepTime("shape")), 10.0);
}

}  // namespace
}  // namespace ablate::storage
