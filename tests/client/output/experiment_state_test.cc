// Tests which runs, means and curves the state of an experiment has after answers and events.
#include "client/output/experiment_state.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExperimentStateTest : public ::testing::Test {
 protected:
  explicit ExperimentStateTest(uint32_t threads = 1) : state_(Experiment(threads)) {
    v1::ListRunsResponse rows;
    for (const char* norm : {"pre", "post"}) {
      for (const char* lr : {"0.01", "0.1"}) {
        for (int seed = 0; seed < 2; ++seed) {
          v1::RunRow* row = rows.add_rows();
          row->set_cell(absl::StrCat(norm, "-lr", lr, "-s", seed));
          (*row->mutable_labels())["norm"] = norm;
          (*row->mutable_labels())["lr"] = lr;
          row->set_state(v1::RunState::QUEUED);
        }
      }
    }
    rows.mutable_rows(0)->set_state(v1::RunState::DONE);  // reused
    v1::Summary* summary = rows.mutable_rows(0)->add_summaries();
    summary->set_key("eval/loss");
    summary->set_last(3);
    state_.SetCells(rows);
  }

  static v1::Experiment Experiment(uint32_t threads = 1) {
    v1::Experiment experiment;
    experiment.mutable_spec()->mutable_base()->mutable_training()->set_threads(threads);
    experiment.set_name("experiments/exp-1");
    experiment.mutable_spec()->add_axes()->set_field("model.norm");
    v1::Axis* lr = experiment.mutable_spec()->add_axes();
    lr->set_name("lr");
    lr->set_tune(true);
    return experiment;
  }

  // The run of a cell has the cell's name.
  void Tell(const std::string& cell, v1::RunState::Value state, uint32_t step,
            std::optional<double> train = std::nullopt, std::optional<double> eval = std::nullopt) {
    v1::ExperimentEvent event;
    event.set_cell(cell);
    event.set_run("runs/" + cell);
    event.set_state(state);
    event.set_step(step);
    event.set_steps(steps_);
    if (train.has_value()) (*event.mutable_last())["train/loss"] = *train;
    if (eval.has_value()) (*event.mutable_last())["eval/loss"] = *eval;
    state_.Update(event, now_);
  }

  void TellWorkers(const std::vector<std::string>& cells, uint32_t lanes) {
    v1::ListWorkersResponse workers;
    v1::Worker* analyst = workers.add_workers();
    analyst->set_role(v1::WorkerRole::analysis);
    analyst->set_lanes(8);
    v1::Worker* worker = workers.add_workers();
    worker->set_role(v1::WorkerRole::train);
    worker->set_state(v1::WorkerState::BUSY);
    worker->set_lanes(lanes);
    for (const std::string& cell : cells) worker->add_runs("runs/" + cell);
    state_.SetWorkers(workers);
  }

  std::vector<std::string> Lanes() {
    std::vector<std::string> cells;
    for (const LaneRow& lane : state_.View().lanes) cells.push_back(lane.cell);
    return cells;
  }

  static constexpr auto kRunning = v1::RunState::RUNNING;
  static constexpr auto kDone = v1::RunState::DONE;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  uint32_t steps_ = 100;
  ExperimentState state_;
};

TEST_F(ExperimentStateTest, ShowsTheRunsThatHaveALaneOfThoseThatAreGranted) {
  for (const char* cell : {"pre-lr0.01-s1", "pre-lr0.1-s0", "pre-lr0.1-s1", "post-lr0.1-s0"}) {
    Tell(cell, kRunning, 0);
  }
  EXPECT_THAT(Lanes(), IsEmpty()) << "no worker is known";
  TellWorkers({"another-experiments", "pre-lr0.1-s1", "pre-lr0.01-s1", "pre-lr0.1-s0"}, 2);
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.1-s1"));
  Tell("pre-lr0.1-s1", kDone, 100);
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s1"));
}

TEST_F(ExperimentStateTest, GivesSpareLanesToRunsGrantedSinceTheListWasMade) {
  TellWorkers({}, 2);
  for (const char* cell : {"pre-lr0.01-s1", "pre-lr0.1-s0", "pre-lr0.1-s1"}) {
    Tell(cell, kRunning, 0);
  }
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s1", "pre-lr0.1-s0"));
}

TEST_F(ExperimentStateTest, CountsARunWithoutALastValueAsDiverged) {
  Tell("pre-lr0.01-s1", kRunning, 50, 2.0, 1.0);
  Tell("pre-lr0.01-s1", kDone, 100, 2.0, std::numeric_limits<double>::quiet_NaN());
  const std::vector<SettingRow> settings = state_.View().settings;
  EXPECT_EQ(settings[0].mean, 3) << "of the reused run alone";
  EXPECT_EQ(settings[0].n, 1u);
  EXPECT_EQ(settings[0].diverged, 1u);
}

class TwoThreadsTest : public ExperimentStateTest {
 protected:
  TwoThreadsTest() : ExperimentStateTest(2) {}
};

TEST_F(TwoThreadsTest, ShowsTheRunsThatHaveTwoLanes) {
  for (const char* cell : {"pre-lr0.01-s1", "pre-lr0.1-s0", "pre-lr0.1-s1"}) {
    Tell(cell, kRunning, 0);
  }
  TellWorkers({"pre-lr0.01-s1", "another-experiments", "pre-lr0.1-s0"}, 4);
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s1")) << "three lanes are taken, one is too few";
  TellWorkers({"pre-lr0.01-s1", "pre-lr0.1-s0"}, 1);
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.01-s1")) << "more threads than lanes";
}

TEST_F(ExperimentStateTest, KeepsARunInItsRow) {
  TellWorkers({}, 2);
  Tell("pre-lr0.1-s0", kRunning, 0);
  Tell("pre-lr0.01-s1", kRunning, 0);
  ASSERT_THAT(Lanes(), ElementsAre("pre-lr0.01-s1", "pre-lr0.1-s0"));
  Tell("pre-lr0.1-s1", kRunning, 0);
  Tell("pre-lr0.01-s1", kDone, 100);
  EXPECT_THAT(Lanes(), ElementsAre("pre-lr0.1-s1", "pre-lr0.1-s0"));
}

TEST_F(ExperimentStateTest, MeasuresTheSpeedOfARunFromItsFirstSteps) {
  TellWorkers({}, 2);
  Tell("pre-lr0.1-s0", kRunning, 0);
  now_ += absl::Seconds(100);  // it waited in the worker
  Tell("pre-lr0.1-s0", kRunning, 10, 3.0);
  EXPECT_EQ(state_.View().lanes[0].steps_per_second, 0);
  now_ += absl::Seconds(2);
  Tell("pre-lr0.1-s0", kRunning, 30, 2.0);
  EXPECT_EQ(state_.View().lanes[0].steps_per_second, 10);
  EXPECT_THAT(state_.View().lanes[0].losses, ElementsAre(3.0, 2.0));
}

TEST_F(ExperimentStateTest, ShowsStepsOfARunWhoseNumberOfStepsIsntKnown) {
  steps_ = 0;
  TellWorkers({}, 2);
  Tell("pre-lr0.1-s0", kRunning, 0);
  for (const uint32_t step : {10, 30, 50}) {
    now_ += absl::Seconds(2);
    Tell("pre-lr0.1-s0", kRunning, step, 2.0);
  }
  const ExperimentView view = state_.View();
  EXPECT_EQ(view.lanes[0].steps, 0u);
  EXPECT_EQ(view.lanes[0].steps_per_second, 10);
  EXPECT_EQ(view.fraction, 0) << "no part of it is known to be done";
  for (const std::string& line : ExperimentScreen(view, 80, 40, now_)) {
    for (const char* text : {"50/", "ETA", "nan", "100 %"}) {
      EXPECT_EQ(line.find(text), std::string::npos) << line;
    }
  }
  steps_ = 200;  // now the program has reported it
  Tell("pre-lr0.1-s0", kRunning, 100);
  EXPECT_EQ(state_.View().lanes[0].steps, 200u);
  EXPECT_GT(state_.View().fraction, 0);
  EXPECT_EQ(state_.View().time_left, absl::Seconds(100 / 22.5));
  steps_ = 0;
  Tell("pre-lr0.1-s0", kDone, 120);
}

TEST_F(ExperimentStateTest, AsksOnceForTheCurveOfARunThatBeganEarlier) {
  TellWorkers({}, 2);
  Tell("pre-lr0.1-s0", kRunning, 50, 2.5);
  Tell("pre-lr0.1-s1", kRunning, 0);
  EXPECT_THAT(state_.TakeRunsWithoutCurve(), ElementsAre("runs/pre-lr0.1-s0"));
  EXPECT_THAT(state_.TakeRunsWithoutCurve(), IsEmpty());
  v1::Series series;
  series.set_run("runs/pre-lr0.1-s0");
  for (const double value : {4.0, 3.0}) series.add_values(value);
  state_.SetCurve(series);
  Tell("pre-lr0.1-s0", kRunning, 60, 2.0);
  EXPECT_THAT(state_.View().lanes[0].losses, ElementsAre(4.0, 3.0, 2.0));
}

TEST_F(ExperimentStateTest, KeepsLongCurvesShort) {
  TellWorkers({}, 1);
  for (uint32_t step = 0; step < 5000; ++step) Tell("pre-lr0.1-s0", kRunning, step, step);
  const std::vector<double> losses = state_.View().lanes[0].losses;
  EXPECT_LT(losses.size(), 512u);
  EXPECT_EQ(losses.back(), 4999);
}

TEST_F(ExperimentStateTest, AveragesDoneSeedsAtTheBestTunedValueSoFar) {
  std::vector<SettingRow> settings = state_.View().settings;
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].setting, "pre");
  EXPECT_EQ(settings[0].mean, 3) << "of the reused run";
  EXPECT_EQ(settings[0].n, 1u);
  EXPECT_EQ(settings[0].seeds, 2u);
  EXPECT_EQ(settings[0].chosen, "lr 0.01");
  EXPECT_FALSE(settings[1].mean.has_value());
  Tell("pre-lr0.1-s0", kDone, 100, 0, 1.0);
  Tell("pre-lr0.1-s1", kDone, 100, 0, 2.0);
  Tell("pre-lr0.1-s1", kDone, 100, 0, 2.0);
  settings = state_.View().settings;
  EXPECT_EQ(settings[0].mean, 1.5);
  EXPECT_EQ(settings[0].n, 2u);
  EXPECT_EQ(settings[0].chosen, "lr 0.1");
  Tell("pre-lr0.1-s1", v1::RunState::DIVERGED, 100);
  EXPECT_EQ(state_.View().settings[0].chosen, "lr 0.01") << "without a diverged run";
}

TEST_F(ExperimentStateTest, ShowsTheComparisonsNumbersAtTheEnd) {
  v1::Comparison comparison;
  comparison.set_key("eval/loss");
  comparison.mutable_verdict()->set_text("“post” is worse.");
  v1::ComparisonRow* row = comparison.add_rows();
  row->set_label("pre");
  row->set_mean(2.5);
  row->set_n(12);
  for (const auto& [lr, seeds] : {std::pair("0.01", 2), {"0.1", 10}}) {
    v1::ChosenValues* chosen = row->add_chosen();
    (*chosen->mutable_labels())["lr"] = lr;
    chosen->set_seeds(static_cast<uint32_t>(seeds));
  }
  state_.End(Experiment(), &comparison);
  const ExperimentView view = state_.View();
  EXPECT_TRUE(view.ended);
  EXPECT_EQ(view.verdict, "“post” is worse.");
  ASSERT_EQ(view.settings.size(), 1u);
  EXPECT_EQ(view.settings[0].mean, 2.5);
  EXPECT_EQ(view.settings[0].chosen, "lr 0.1 ×10, lr 0.01 ×2");
}

TEST_F(ExperimentStateTest, TakesAnEventAsASignThatTheServerAnswers) {
  state_.SetWaiting(now_, "");
  EXPECT_TRUE(state_.View().lost.has_value());
  Tell("pre-lr0.1-s0", kRunning, 1);
  EXPECT_FALSE(state_.View().lost.has_value());
}

}  // namespace
}  // namespace ablate::client
