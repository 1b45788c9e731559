// Tests who is charged for runs, device time and bytes.
#include <map>
#include <string>
#include <utility>

#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Micros kHour = Micros{3600} * 1'000'000;

class SharesTest : public StoreTest {
 protected:
  std::string SubmitAs(const std::string& owner, const std::vector<std::string>& runs,
                       int priority = 1) {
    NewExperiment experiment = MakeExperiment(runs);
    experiment.owner = owner;
    experiment.priority = priority;
    return Create(experiment).id;
  }
  // Returns the user of each queued run, in the queue's order.
  std::vector<std::string> Queued(uint32_t limit = 100) {
    std::vector<std::string> runs;
    for (const QueuedRun& run : Value(store().Queue("cpu", {"torch"}, limit))) {
      runs.push_back(run.user + " " + run.run);
    }
    return runs;
  }
  static PointsEvent Spend(uint32_t step, Micros device_time) {
    PointsEvent event = MakePoints(step, {});
    event.spent.device_time = device_time;
    return event;
  }
};
INSTANTIATE_TEST_SUITE_P(, SharesTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(SharesTest, QueueHasTheFirstRunsOfEachUser) {
  SubmitAs("bob", {"b1", "b2", "b3"});
  SubmitAs("ann", {"a1"});
  SubmitAs("ann", {"a2"}, 0);
  EXPECT_THAT(Queued(), ElementsAre("ann a2", "ann a1", "bob b1", "bob b2", "bob b3"));
  EXPECT_THAT(Queued(1), ElementsAre("ann a2", "bob b1"));
}

TEST_P(SharesTest, TheFirstWhoAskedIsChargedWhileTheyWantIt) {
  const std::string first = SubmitAs("ann", {"x"});
  const std::string second = SubmitAs("bob", {"x", "y"});
  EXPECT_THAT(Queued(), ElementsAre("ann x", "bob y"));
  Value(store().CancelExperiment(first));
  EXPECT_THAT(Queued(), ElementsAre("bob x", "bob y"));
  SubmitAs("ann", {"x"});
  EXPECT_THAT(Queued(), ElementsAre("bob x", "bob y"));
  Value(store().CancelExperiment(second));
  EXPECT_THAT(Queued(), ElementsAre("ann x")) << "who asked again";
}

TEST_P(SharesTest, DeviceTimeIsChargedAndHalvesInAnHour) {
  SubmitAs("ann", {"x", "y"});
  Lease lease(&store(), "l", {"x", "y"});
  lease.Send("x", Spend(10, 3'000'000));
  lease.Send("y", Spend(10, 1'000'000));
  EXPECT_NEAR(Value(store().GetShares())["ann"].used, 4e6, 1);
  Advance(kHour);
  EXPECT_NEAR(Value(store().GetShares())["ann"].used, 2e6, 1);
  lease.Send("x", Spend(20, 500'000));
  EXPECT_NEAR(Value(store().GetShares())["ann"].used, 2.5e6, 1);
  Advance(2 * kHour);
  Reopen();
  EXPECT_NEAR(Value(store().GetShares())["ann"].used, 2.5e6 / 4, 1);
}

// Sums of it must fit signed numbers and clients' durations.
TEST_P(SharesTest, NoRunHasMoreDeviceTimeThanAHundredYears) {
  SubmitAs("ann", {"x"});
  Lease lease(&store(), "l", {"x"});
  EXPECT_EQ(lease.Send("x", Spend(10, kMaxDeviceTime)), Applied::kApplied);
  const absl::Status more = ApplyAndWait(store(), "i1", {lease.Next("x", Spend(20, 1))}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(more)) << more;
  EXPECT_THAT(std::string(more.message()), HasSubstr("expected at most"));
  EXPECT_EQ(Run("x").spent.device_time, kMaxDeviceTime);
  EXPECT_NEAR(Value(store().GetShares())["ann"].used, static_cast<double>(kMaxDeviceTime), 1e6);
}

TEST_P(SharesTest, CountEachLaneOfARun) {
  NewExperiment experiment = MakeExperiment({"x", "y"});
  experiment.owner = "ann";
  experiment.runs[0].lanes = 3;
  Create(experiment);
  const std::vector<QueuedRun> queue = Value(store().Queue("cpu", {"torch"}, 10));
  EXPECT_EQ(queue[0].lanes, 3u);
  EXPECT_EQ(queue[1].lanes, 1u);
  Lease lease(&store(), "l", {"x", "y"});
  EXPECT_EQ(Value(store().GetShares()).at("ann").training, 4u);
}

TEST_P(SharesTest, SayWhatTheRunsOfEachStillTake) {
  SubmitAs("ann", {"x", "y"});
  SubmitAs("bob", {"z"});
  Lease lease(&store(), "l", {"x", "y"});
  const auto shares = Value(store().GetShares());
  EXPECT_EQ(shares.at("ann").training, 2u);
  EXPECT_GT(shares.at("ann").expected, 0);
  EXPECT_EQ(shares.count("bob"), 0u) << "who has nothing out, and has had nothing";
  lease.Send("x", Spend(kSteps / 2, 1000));
  EXPECT_LT(Value(store().GetShares()).at("ann").expected, shares.at("ann").expected);
}

TEST_P(SharesTest, ExpectWhatATrainingRunTakesAtItsOwnSpeed) {
  SubmitAs("ann", {"x"});
  SubmitAs("bob", {"y"});
  Lease lease(&store(), "l", {"x", "y"});
  lease.Send("x", Spend(kSteps, 1000));
  lease.Send("x", FinishedEvent{false, kSteps});
  const double expected = Value(store().GetShares()).at("bob").expected;
  EXPECT_EQ(expected, 1000) << "as the finished run of its shape";
  lease.Send("y", Spend(kSteps / 2, 60'000'000));
  EXPECT_EQ(Value(store().GetShares()).at("bob").expected, 60e6);
}

TEST_P(SharesTest, CountWhatIsAtAUsersCharge) {
  NewExperiment experiment = MakeExperiment({"x", "y"});
  experiment.owner = "ann";
  for (NewRun& run : experiment.runs) run.expected_bytes = 1000;
  Create(experiment);
  SubmitAs("bob", {"x", "z"});
  EXPECT_EQ(Value(store().HoldingsOf("bob")).open_runs, 2u) << "x, too, which ann is charged for";
  Holdings ann = Value(store().HoldingsOf("ann"));
  EXPECT_EQ(ann.open_runs, 2u);
  EXPECT_EQ(ann.bytes, 2000u);
  Lease lease(&store(), "l", {"x"});
  const CheckpointEvent checkpoint = Checkpoint(kSteps);
  lease.Send("x", checkpoint);
  lease.Send("x", FinishedEvent{true, kSteps});
  ann = Value(store().HoldingsOf("ann"));
  EXPECT_EQ(ann.open_runs, 1u);
  EXPECT_EQ(ann.bytes, 1000u + checkpoint.bytes);
  const auto all = Value(store().GetHoldings());
  EXPECT_EQ(all.at("ann").bytes, ann.bytes);
  EXPECT_EQ(all.at("bob").open_runs, 1u) << "z; x has ended";
  EXPECT_EQ(Value(store().HoldingsOf("carl")).bytes, 0u);
}

TEST_P(SharesTest, WhatARemovedExperimentLeavesIsAtTheNextOnesCharge) {
  const std::string first = SubmitAs("ann", {"x"});
  SubmitAs("bob", {"x"});
  Lease lease(&store(), "l", {"x"});
  const CheckpointEvent checkpoint = Checkpoint(kSteps);
  lease.Send("x", checkpoint);
  lease.Send("x", FinishedEvent{true, kSteps});
  EXPECT_EQ(Value(store().HoldingsOf("ann")).bytes, checkpoint.bytes);
  ASSERT_TRUE(store().DeleteExperiment(first).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(Value(store().HoldingsOf("ann")).bytes, 0u);
  EXPECT_EQ(Value(store().HoldingsOf("bob")).bytes, checkpoint.bytes);
}

TEST_P(SharesTest, RefuseASubmitBeyondTheRunsThatMayBeOpen) {
  SubmitAs("ann", {"x", "y"});
  NewExperiment more = MakeExperiment({"x", "z", "w"});
  more.owner = "ann";
  more.max_open_runs = 3;
  const absl::Status refused = store().CreateExperiment(more).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("ann would have 4 queued or training runs; expected at most 3"));
  EXPECT_THAT(Queued(), ElementsAre("ann x", "ann y")) << "nothing of it is there";
  more.max_open_runs = 4;
  EXPECT_TRUE(store().CreateExperiment(more).ok());
}

TEST_P(SharesTest, RefuseASubmitOfOthersRunsBeyondThoseThatMayBeOpen) {
  const std::string first = SubmitAs("ann", {"x", "y"});
  NewExperiment same = MakeExperiment({"x", "y"});
  same.owner = "bob";
  same.max_open_runs = 1;
  const absl::Status refused = store().CreateExperiment(same).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  const auto wanted = same.runs;
  EXPECT_FALSE(Value(store().LookUpRuns(wanted, "bob"))[0].counts_toward_quota);
  EXPECT_TRUE(Value(store().LookUpRuns(wanted, "ann"))[0].counts_toward_quota);
  same.max_open_runs = 2;
  ASSERT_TRUE(store().CreateExperiment(same).ok());
  Value(store().CancelExperiment(first));
  EXPECT_THAT(Queued(), ElementsAre("bob x", "bob y"));
  EXPECT_EQ(Value(store().HoldingsOf("ann")).open_runs, 0u);
  EXPECT_FALSE(Value(store().LookUpRuns(wanted, "ann"))[0].counts_toward_quota);
}

}  // namespace
}  // namespace ablate::storage
