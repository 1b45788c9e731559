// Tests which run comes next.
#include "server/schedule/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace ablate::schedule {
namespace {

using storage::DeviceShares;
using storage::QueuedRun;
using testing::ElementsAre;

QueuedRun RunOf(const std::string& user, uint64_t place, int priority = 1) {
  QueuedRun run;
  run.run = absl::StrCat(user, place);
  run.user = user;
  run.place = place;
  run.priority = priority;
  return run;
}

// Returns the names of the runs in order of granting; each takes so long.
std::vector<std::string> Order(const std::vector<QueuedRun>& queue, const DeviceShares& shares,
                               double micros = 10, const MaxLanes& max_lanes = nullptr) {
  FairQueue fair(queue, shares, max_lanes);
  std::vector<std::string> order;
  while (const QueuedRun* run = fair.Next()) {
    order.push_back(run->run);
    fair.HandedOut(micros);
  }
  return order;
}

TEST(FairQueueTest, KeepsTheOrderOfOneUser) {
  EXPECT_THAT(Order({RunOf("a", 3, 0), RunOf("a", 1), RunOf("a", 2)}, {}),
              ElementsAre("a3", "a1", "a2"));
  EXPECT_THAT(Order({}, {}), ElementsAre());
}

TEST(FairQueueTest, LetsUsersTakeTurnsWhoeverCameFirst) {
  EXPECT_THAT(
      Order({RunOf("a", 1), RunOf("a", 2), RunOf("a", 3), RunOf("b", 4), RunOf("b", 5)}, {}),
      ElementsAre("a1", "b4", "a2", "b5", "a3"));
}

TEST(FairQueueTest, BeginsWithWhoHasHadTheLeast) {
  DeviceShares shares;
  shares["a"].used = 25;
  shares["b"].used = 5;
  shares["b"].expected = 10;
  EXPECT_THAT(
      Order({RunOf("a", 1), RunOf("a", 2), RunOf("b", 3), RunOf("b", 4), RunOf("b", 5)}, shares),
      ElementsAre("b3", "a1", "b4", "a2", "b5"));
}

TEST(FairQueueTest, LetsBackgroundWaitForEverybodysOthers) {
  DeviceShares shares;
  shares["b"].used = 1000;
  EXPECT_THAT(Order({RunOf("a", 1, 2), RunOf("b", 2, 1), RunOf("b", 3, 0)}, shares),
              ElementsAre("b2", "b3", "a1"));
}

TEST(FairQueueTest, DoesNotLetAPriorityOvertakeOthersRuns) {
  EXPECT_THAT(Order({RunOf("a", 1, 0), RunOf("a", 2, 0), RunOf("b", 3, 1)}, {}),
              ElementsAre("a1", "b3", "a2"));
}

TEST(FairQueueTest, GivesNobodyMoreLanesThanTheirQuota) {
  DeviceShares shares;
  shares["a"].training = 1;
  shares["c"].training = 7;
  const MaxLanes two_of_a = [](const std::string& user) -> std::optional<int64_t> {
    if (user == "b") return std::nullopt;
    return 2;
  };
  EXPECT_THAT(Order({RunOf("a", 1), RunOf("a", 2), RunOf("b", 3), RunOf("b", 4), RunOf("c", 5)},
                    shares, 10, two_of_a),
              ElementsAre("a1", "b3", "b4"));
}

TEST(FairQueueTest, CountsEachLaneOfARun) {
  std::vector<QueuedRun> queue = {RunOf("a", 1), RunOf("a", 2), RunOf("a", 3)};
  queue[0].lanes = 3;
  const MaxLanes two = [](const std::string&) -> std::optional<int64_t> { return 2; };
  EXPECT_THAT(Order(queue, {}, 10, two), ElementsAre("a1")) << "it begins below the quota";
  queue[0].lanes = 1;
  EXPECT_THAT(Order(queue, {}, 10, two), ElementsAre("a1", "a2"));
}

TEST(FairQueueTest, LeavesOutARunThatIsNotHandedOut) {
  FairQueue fair({RunOf("a", 1), RunOf("b", 2), RunOf("b", 3)}, {}, nullptr);
  EXPECT_EQ(fair.Next()->run, "a1");
  EXPECT_EQ(fair.Next()->run, "b2") << "a1 has to wait";
  fair.HandedOut(10);
  EXPECT_EQ(fair.Next()->run, "b3");
  EXPECT_EQ(fair.Next(), nullptr);
}

// Users with waiting runs get equal device time, whatever their runs' sizes and numbers.
TEST(FairQueueTest, EvensOutDeviceTime) {
  std::mt19937 random(7);
  std::vector<QueuedRun> queue;
  std::map<std::string, double> length = {{"a", 1}, {"b", 30}, {"c", 7}};
  for (const auto& [user, micros] : length) {
    for (int i = 0; i < 3000; ++i) queue.push_back(RunOf(user, random() % 100'000));
  }
  FairQueue fair(queue, {}, nullptr);
  std::map<std::string, double> had;
  double all = 0;
  while (all < 6000) {
    const std::string user = fair.Next()->user;
    fair.HandedOut(length[user]);
    had[user] += length[user];
    all += length[user];
  }
  for (const auto& [user, micros] : had) EXPECT_NEAR(micros, 2000, 31) << user;
}

}  // namespace
}  // namespace ablate::schedule
