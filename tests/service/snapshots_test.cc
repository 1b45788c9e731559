// Tests how the server counts an experiment for those who watch it: lanes, speeds, means.
#include "server/service/snapshots.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::service {
namespace {

using storage::RunState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kQueued = RunState::kQueued;
constexpr auto kTraining = RunState::kLeased;
constexpr auto kDone = RunState::kDone;

v1::ExperimentSpec Spec() {
  v1::ExperimentSpec spec;
  spec.add_axes()->set_field("model.norm");
  v1::Axis* lr = spec.add_axes();
  lr->set_name("lr");
  lr->set_tune(true);
  return spec;
}

class CellTallyTest : public ::testing::Test {
 protected:
  // Counts a cell of the grid pre, post × lr 0.01, 0.1 × two seeds. Its run has its name.
  void Tell(const std::string& cell, RunState state, uint32_t step = 0,
            std::optional<double> eval = std::nullopt, const std::string& run = "") {
    storage::CellRecord record;
    record.name = cell;
    record.run = run.empty() ? cell : run;
    const bool post = cell.substr(0, 4) == "post", large = cell.find("lr0.1-") != cell.npos;
    record.index = (post ? 4 : 0) + (large ? 2 : 0) + (cell.back() == '1' ? 1 : 0);
    record.labels = {{"norm", post ? "post" : "pre"}, {"lr", large ? "0.1" : "0.01"}};
    record.state = state;
    record.step = step;
    record.steps = steps_;
    storage::RunSummaries summaries;
    if (eval.has_value()) {
      storage::Summary& summary = summaries.keys.emplace_back();
      summary.key = "eval/loss";
      summary.last = *eval;
    }
    tally_.Update(record, summaries);
  }
  // Counts all cells as queued.
  void TellGrid() {
    for (const char* norm : {"pre", "post"}) {
      for (const char* lr : {"0.01", "0.1"}) {
        for (const int seed : {0, 1}) Tell(absl::StrCat(norm, "-lr", lr, "-s", seed), kQueued);
      }
    }
  }
  // Has the worker's lanes train runs at a speed.
  void Train(const std::vector<std::pair<std::string, double>>& runs) {
    schedule::WorkerInfo worker;
    worker.name = "cpu-train";
    for (const auto& [run, speed] : runs) worker.training.push_back({run, speed, {3, 2}});
    workers_ = {worker};
  }

  v1::Snapshot Snapshot(absl::Duration after = absl::ZeroDuration()) {
    now_ += after;
    return tally_.MakeSnapshot(workers_, now_);
  }
  std::vector<std::string> Lanes() {
    std::vector<std::string> cells;
    const v1::Snapshot snapshot = Snapshot();
    for (const v1::Lane& lane : snapshot.lanes()) cells.push_back(lane.cell());
    return cells;
  }

  uint32_t steps_ = 1000;
  CellTally tally_{Spec()};
  std::vector<schedule::WorkerInfo> workers_;
  absl::Duration now_ = absl::Seconds(1000);
};

TEST_F(CellTallyTest, ListsTheRunsThatLanesTrain) {
  Tell("pre-lr0.01-s0", kTraining, 100);
  Tell("pre-lr0.01-s1", kQueued);  // its first event isn't stored yet
  Train({{"another-experiments", 1}, {"pre-lr0.01-s1", 0}, {"pre-lr0.01-s0", 50}});
  const v1::Snapshot snapshot = Snapshot();
  ASSERT_EQ(snapshot.lanes_size(), 1);
  const v1::Lane& lane = snapshot.lanes(0);
  EXPECT_EQ(lane.worker(), "workers/cpu-train");
  EXPECT_EQ(lane.cell(), "pre-lr0.01-s0");
  EXPECT_EQ(lane.step(), 100u);
  EXPECT_EQ(lane.steps(), 1000u);
  EXPECT_EQ(lane.training().run(), "runs/pre-lr0.01-s0");
  EXPECT_EQ(lane.training().steps_per_second(), 50);
  EXPECT_THAT(lane.training().losses(), ElementsAre(3, 2));
}

TEST_F(CellTallyTest, KeepsARunInItsPlace) {
  for (const char* cell : {"pre-lr0.01-s0", "pre-lr0.01-s1", "pre-lr0.1-s0"}) {
    Tell(cell, kTraining);
  }
  Train({{"pre-lr0.1-s0", 1}, {"pre-lr0.01-s0", 1}});
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s0", "pre-lr0.1-s0"));
  Train({{"pre-lr0.1-s0", 1}, {"pre-lr0.01-s1", 1}});
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s1", "pre-lr0.1-s0"));
  Train({{"pre-lr0.1-s0", 1}});
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.1-s0"));
}

TEST_F(CellTallyTest, NamesTheFirstCellOfARunThatCellsShare) {
  Tell("pre-lr0.1-s0", kTraining, 0, std::nullopt, "shared");
  Tell("pre-lr0.01-s0", kTraining, 0, std::nullopt, "shared");
  Train({{"shared", 0}});
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s0"));
  Tell("pre-lr0.1-s0", kTraining, 0, std::nullopt, "shared");
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s0")) << "whichever was told last";
  Snapshot();
  Tell("pre-lr0.1-s0", kTraining, 500, std::nullopt, "shared");
  Tell("pre-lr0.01-s0", kTraining, 500, std::nullopt, "shared");
  const v1::Snapshot snapshot = Snapshot(absl::Seconds(10));
  EXPECT_EQ(snapshot.steps_per_second(), 50) << "of one run";
  EXPECT_EQ(snapshot.time_left().seconds(), 10);
  EXPECT_EQ(snapshot.fraction(), .5);
}

TEST_F(CellTallyTest, MeasuresTheSpeedOfAllAndTheTimeLeft) {
  Tell("pre-lr0.01-s0", kTraining, 500);
  Tell("pre-lr0.01-s1", kQueued);
  Tell("pre-lr0.1-s0", kDone, 1000);
  v1::Snapshot snapshot = Snapshot();
  EXPECT_EQ(snapshot.steps_per_second(), 0);
  EXPECT_FALSE(snapshot.has_time_left());
  EXPECT_EQ(snapshot.fraction(), .5);
  Tell("pre-lr0.01-s0", kTraining, 700);
  snapshot = Snapshot(absl::Seconds(2));
  EXPECT_EQ(snapshot.steps_per_second(), 100);
  EXPECT_EQ(snapshot.time_left().seconds(), 13) << "for 300 and 1,000 steps";
}

TEST_F(CellTallyTest, TakesTheTimeLeftFromTheRunThatStillTrains) {
  Tell("pre-lr0.01-s0", kTraining, 0);
  Tell("pre-lr0.01-s1", kQueued);
  Snapshot();
  Tell("pre-lr0.01-s0", kDone, 1000);
  Tell("pre-lr0.01-s1", kTraining, 3);
  Train({{"pre-lr0.01-s1", 1}});
  const v1::Snapshot snapshot = Snapshot(absl::Seconds(5));
  EXPECT_GT(snapshot.steps_per_second(), 200);
  EXPECT_EQ(snapshot.time_left().seconds(), 997);
}

TEST_F(CellTallyTest, KnowsNoTimeLeftWhileStepsOfAProgramAreUnknown) {
  steps_ = 0;
  Tell("pre-lr0.01-s0", kTraining, 0);
  Train({{"pre-lr0.01-s0", 10}});
  Snapshot();
  Tell("pre-lr0.01-s0", kTraining, 50);
  v1::Snapshot snapshot = Snapshot(absl::Seconds(5));
  EXPECT_EQ(snapshot.lanes(0).step(), 50u);
  EXPECT_EQ(snapshot.lanes(0).steps(), 0u);
  EXPECT_EQ(snapshot.steps_per_second(), 10);
  EXPECT_EQ(snapshot.fraction(), 0) << "no part of it is known to be done";
  EXPECT_FALSE(snapshot.has_time_left());
  steps_ = 200;  // now the program has reported it
  Tell("pre-lr0.01-s0", kTraining, 100);
  snapshot = Snapshot(absl::Seconds(5));
  EXPECT_EQ(snapshot.lanes(0).steps(), 200u);
  EXPECT_EQ(snapshot.fraction(), .5);
  EXPECT_EQ(snapshot.time_left().seconds(), 10);
  Tell("pre-lr0.01-s0", kTraining, 250);
  EXPECT_FALSE(Snapshot(absl::Seconds(5)).has_time_left()) << "it makes more than it reported";
  steps_ = 0;
  Tell("pre-lr0.01-s1", kDone, 0);
  steps_ = 260;
  Tell("pre-lr0.01-s0", kTraining, 255);
  EXPECT_TRUE(Snapshot(absl::Seconds(1)).has_time_left()) << "a run that has ended may have none";
  steps_ = 0;
  Tell("pre-lr0.1-s0", kQueued);
  EXPECT_FALSE(Snapshot(absl::Seconds(1)).has_time_left()) << "a run that waits counts, too";
}

TEST_F(CellTallyTest, MeasuresAgainAfterARewind) {
  Tell("pre-lr0.01-s0", kTraining, 800);
  Snapshot();
  Tell("pre-lr0.01-s0", kQueued, 300);
  EXPECT_EQ(Snapshot(absl::Seconds(5)).steps_per_second(), 0);
}

TEST_F(CellTallyTest, ForgetsSpeedsOfLongAgo) {
  Tell("pre-lr0.01-s0", kTraining, 0);
  Snapshot();
  Tell("pre-lr0.01-s0", kTraining, 500);
  Snapshot(absl::Seconds(1));
  for (uint32_t i = 1; i <= 30; ++i) {
    Tell("pre-lr0.01-s0", kTraining, 500 + i);
    Snapshot(absl::Seconds(1));
  }
  EXPECT_EQ(Snapshot().steps_per_second(), 1);
}

TEST_F(CellTallyTest, AveragesDoneSeedsAtTheBestTunedValueSoFar) {
  TellGrid();
  Tell("post-lr0.1-s0", kDone, 1000, 3.0);
  v1::Snapshot snapshot = Snapshot();
  ASSERT_EQ(snapshot.settings_size(), 2);
  const v1::SettingMean& post = snapshot.settings(0);
  EXPECT_THAT(post.labels(), UnorderedElementsAre(Pair("norm", "post"), Pair("lr", "0.1")));
  EXPECT_EQ(post.mean(), 3);
  EXPECT_EQ(post.n(), 1u);
  EXPECT_EQ(post.cells(), 2u);
  EXPECT_THAT(snapshot.settings(1).labels(), ElementsAre(Pair("norm", "pre")));
  EXPECT_FALSE(snapshot.settings(1).has_mean());
  Tell("post-lr0.01-s0", kDone, 1000, 1.0);
  Tell("post-lr0.01-s1", kDone, 1000, 2.0);
  Tell("post-lr0.01-s1", kDone, 1000, 2.0);
  snapshot = Snapshot();
  EXPECT_EQ(snapshot.settings(0).labels().at("lr"), "0.01");
  EXPECT_EQ(snapshot.settings(0).mean(), 1.5);
  EXPECT_EQ(snapshot.settings(0).n(), 2u);
  Tell("post-lr0.01-s1", RunState::kDiverged, 1000);
  EXPECT_EQ(Snapshot().settings(0).labels().at("lr"), "0.1") << "without a diverged run";
  Tell("pre-lr0.1-s0", kDone, 1000, 2.5);
  snapshot = Snapshot();
  EXPECT_EQ(snapshot.settings(0).labels().at("norm"), "pre");
  EXPECT_EQ(snapshot.settings(1).labels().at("norm"), "post");
}

TEST_F(CellTallyTest, CountsARunWithoutALastValueAsDiverged) {
  Tell("pre-lr0.01-s0", kDone, 1000, 3.0);
  Tell("pre-lr0.01-s1", kTraining, 500, 1.0);
  Tell("pre-lr0.01-s1", kDone, 1000, std::nan(""));
  const v1::Snapshot snapshot = Snapshot();
  EXPECT_EQ(snapshot.settings(0).mean(), 3);
  EXPECT_EQ(snapshot.settings(0).n(), 1u);
  EXPECT_EQ(snapshot.settings(0).diverged(), 1u);
}

TEST_F(CellTallyTest, NamesFailedCellsAndTheNewestValue) {
  TellGrid();
  EXPECT_FALSE(Snapshot().has_newest());
  EXPECT_THAT(Snapshot().failed(), IsEmpty());
  Tell("pre-lr0.1-s1", RunState::kFailed);
  Tell("pre-lr0.01-s1", RunState::kFailed);
  Tell("pre-lr0.01-s0", kTraining, 10, 2.5);
  const v1::Snapshot snapshot = Snapshot();
  EXPECT_THAT(snapshot.failed(), ElementsAre("pre-lr0.01-s1", "pre-lr0.1-s1"));
  EXPECT_EQ(snapshot.newest().cell(), "pre-lr0.01-s0");
  EXPECT_EQ(snapshot.newest().key(), "eval/loss");
  EXPECT_EQ(snapshot.newest().value(), 2.5);
}

TEST_F(CellTallyTest, SaysThatAllIsDoneOnlyAtTheEnd) {
  Tell("pre-lr0.01-s0", kTraining, 1000);
  EXPECT_LT(Snapshot().fraction(), 1);
  Tell("pre-lr0.01-s0", kDone, 1000);
  EXPECT_EQ(Snapshot().fraction(), 1);
}

}  // namespace
}  // namespace ablate::service
