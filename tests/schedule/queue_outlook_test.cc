// Tests what is said of experiments in the queue.
#include "server/schedule/queue_outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ablate::schedule {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class QueueOutlookTest : public testing::Test {
 protected:
  QueueOutlookTest() { AddWorker("cpu", 2, 2); }

  void AddWorker(const std::string& kind, uint32_t lanes, uint32_t busy) {
    WorkerInfo& worker = facts_.workers.emplace_back();
    worker.attached = true;
    worker.device_kind = kind;
    worker.trainers = {{"torch", ""}};
    worker.lanes = lanes;
    worker.busy_lanes = busy;
  }
  // Adds runs of 10 s each, of a measured shape.
  storage::QueuedGroup& Add(const std::string& user, const std::string& experiment, uint32_t runs) {
    facts_.step_micros["shape"] = 1e6;
    storage::QueuedGroup& group = facts_.groups.emplace_back();
    group.user = group.owner = user;
    group.experiment = experiment;
    group.device_kind = "cpu";
    group.trainer = "torch";
    group.shape = "shape";
    group.runs = runs;
    group.steps = uint64_t{10} * runs;
    group.place = static_cast<int64_t>(facts_.groups.size());
    return group;
  }
  std::vector<std::string> Order() {
    std::vector<std::string> order;
    for (const auto& outlook : LookAhead(facts_)) order.push_back(outlook.group->experiment);
    return order;
  }
  ExperimentOutlook Of(const std::string& experiment) {
    for (const auto& outlook : LookAhead(facts_)) {
      if (outlook.group->experiment == experiment) return outlook;
    }
    ADD_FAILURE() << experiment;
    return {};
  }

  QueueFacts facts_;
};

TEST_F(QueueOutlookTest, CountsEarlierRunsOfTheUser) {
  Add("ada", "first", 4);
  Add("ada", "second", 4);
  EXPECT_THAT(Order(), ElementsAre("first", "second"));
  EXPECT_EQ(Of("first").waits, "all 2 lanes are busy");
  const ExperimentOutlook second = Of("second");
  EXPECT_EQ(second.waits, "first come earlier runs of ada");
  ASSERT_TRUE(second.start.has_value());
  // Four runs of 10 s on two lanes take 20 s, 0.8 to 1.3 times.
  EXPECT_EQ(second.start->soonest, absl::Seconds(16));
  EXPECT_EQ(second.start->latest, absl::Seconds(26));
}

TEST_F(QueueOutlookTest, GivesOthersTheirShareFirst) {
  facts_.shares["ada"].used = 50e6;
  Add("ada", "hers", 1);
  Add("bob", "his", 100);
  EXPECT_THAT(Order(), ElementsAre("his", "hers"));
  const ExperimentOutlook hers = Of("hers");
  EXPECT_EQ(hers.waits, "first come runs of bob, who had less device time");
  // Bob gets the 50 s that ada has had.
  EXPECT_EQ(hers.start->soonest, absl::Seconds(20));
  EXPECT_EQ(hers.start->latest, absl::Seconds(32.5));
  EXPECT_EQ(Of("his").start->soonest, absl::ZeroDuration());
}

TEST_F(QueueOutlookTest, LetsBackgroundRunsWaitForEverybody) {
  Add("ada", "hers", 2).priority = 2;
  Add("bob", "his", 4);
  const ExperimentOutlook hers = Of("hers");
  EXPECT_EQ(hers.waits, "first come runs of bob, because its priority is background");
  EXPECT_EQ(hers.start->soonest, absl::Seconds(16));
}

TEST_F(QueueOutlookTest, IsVagueAboutRunsOfUnknownTime) {
  Add("ada", "unknown", 1).shape = "never measured";
  Add("ada", "next", 1);
  const ExperimentOutlook next = Of("next");
  EXPECT_EQ(next.start->soonest, absl::Seconds(1));
  EXPECT_EQ(next.start->latest, absl::Seconds(25));
}

TEST_F(QueueOutlookTest, AddsWhatLanesStillTrain) {
  facts_.shares["bob"].expected = 30e6;
  Add("ada", "hers", 1);
  EXPECT_EQ(Of("hers").start->soonest, absl::ZeroDuration());
  EXPECT_EQ(Of("hers").start->latest, absl::Seconds(19.5));
  facts_.workers[0].busy_lanes = 1;
  EXPECT_EQ(Of("hers").start->latest, absl::ZeroDuration());
  EXPECT_EQ(Of("hers").waits, "begins now");
}

TEST_F(QueueOutlookTest, SaysWhyNoRunCanBegin) {
  Add("ada", "paused", 3).paused = true;
  Add("ada", "gpu", 1).device_kind = "cuda";
  Add("ada", "other", 1).trainer = "program:jax";
  Add("ada", "native", 1).trainer = "native";
  auto& hidden = Add("ada", "hidden", 1);
  hidden.trainer = "program:secret";
  hidden.private_to = "ada";
  EXPECT_THAT(Of("paused").waits, HasSubstr("paused"));
  EXPECT_EQ(Of("gpu").waits, "no worker with a GPU is attached");
  EXPECT_EQ(Of("other").waits, "no attached worker offers the environment jax");
  EXPECT_EQ(Of("hidden").waits, "no attached worker offers its environment");
  EXPECT_EQ(Of("native").waits, "no attached worker has the trainer native");
  for (const char* name : {"paused", "gpu", "other", "native"}) {
    EXPECT_FALSE(Of(name).start.has_value()) << name;
  }
  EXPECT_EQ(Order().back(), "paused");
  facts_.pilots.push_back({"slurm-a@ci", "slurm", "cuda", "Priority"});
  EXPECT_EQ(Of("gpu").waits, "waits for a pilot of slurm: Priority");
  facts_.pilots.push_back({"slurm-b@ci", "slurm", "cuda", ""});
  EXPECT_EQ(Of("gpu").waits, "waits for the first of 2 pilots of slurm: Priority");
  facts_.stalled = "disk full";
  EXPECT_EQ(Of("gpu").waits, "disk full");
}

TEST_F(QueueOutlookTest, NamesTheQuota) {
  facts_.max_lanes = [](const std::string&) { return std::optional<int64_t>(2); };
  facts_.shares["ada"].training = 2;
  Add("ada", "hers", 1);
  EXPECT_EQ(Of("hers").waits, "the quota of ada, 2 lanes, is used");
  facts_.shares["ada"].training = 1;
  EXPECT_EQ(Of("hers").waits, "all 2 lanes are busy");
}

TEST_F(QueueOutlookTest, AddsUpTheGroupsOfAnExperiment) {
  Add("ada", "mixed", 3);
  Add("ada", "mixed", 2).device_kind = "cuda";
  const ExperimentOutlook mixed = Of("mixed");
  EXPECT_EQ(mixed.queued, 5u);
  EXPECT_EQ(mixed.group->device_kind, "cpu") << "which begins first";
}

}  // namespace
}  // namespace ablate::schedule
