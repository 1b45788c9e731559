// Tests progress on a terminal and elsewhere, with a clock of the test's own.
#include "client/output/progress.h"

#include <algorithm>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  Progress Make(bool live, int width = 200) {
    ProgressOptions options;
    options.name = "exp-1";
    options.primary = "eval/loss";
    options.line = {live, width, &out_, [this] { return now_; }};
    return Progress(options);
  }

  v1::ExperimentEvent Event(const std::string& cell, v1::RunState::Value state, uint32_t step,
                            const std::string& run = "") {
    v1::ExperimentEvent event;
    event.set_cell(cell);
    event.set_run("runs/" + (run.empty() ? cell : run));
    event.set_state(state);
    event.set_step(step);
    event.set_steps(1000);
    *event.mutable_counts() = counts_;
    return event;
  }

  std::ostringstream out_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  v1::RunCounts counts_;
};

TEST_F(ProgressTest, ShowsCountsRateTimeLeftAndMetric) {
  Progress progress = Make(true);
  counts_.set_queued(1);
  counts_.set_running(1);
  counts_.set_done(2);
  counts_.set_failed(1);
  progress.Update(Event("a", v1::RunState::RUNNING, 500));
  progress.Update(Event("b", v1::RunState::QUEUED, 0));
  progress.Update(Event("c", v1::RunState::DONE, 1000));
  EXPECT_EQ(progress.Line(), "3/5 ended, 1 running, 1 failed");
  now_ += absl::Seconds(2);
  v1::ExperimentEvent event = Event("a", v1::RunState::RUNNING, 700);
  (*event.mutable_last())["train/loss"] = 2.123456;
  progress.Update(event);
  // 200 steps in 2 s; 300 + 1000 to go.
  EXPECT_EQ(progress.Line(),
            "3/5 ended, 1 running, 1 failed   100 steps/s   ETA 13 s   train/loss 2.123 of a");
  (*event.mutable_last())["eval/loss"] = 3;
  progress.Update(event);
  EXPECT_THAT(progress.Line(), ::testing::EndsWith("   eval/loss 3 of a"));
}

TEST_F(ProgressTest, CountsRunsOnLanesAsRunning) {
  Progress progress = Make(true);
  counts_.set_running(5);
  progress.Update(Event("a", v1::RunState::RUNNING, 500), 2);
  EXPECT_EQ(progress.Line(), "0/5 ended, 2 running");
  progress.Update(Event("a", v1::RunState::RUNNING, 500), 0);
  EXPECT_EQ(progress.Line(), "0/5 ended");
}

TEST_F(ProgressTest, TakesTheTimeLeftFromTheRunThatStillTrains) {
  Progress progress = Make(true);
  progress.Update(Event("fast", v1::RunState::RUNNING, 0));
  progress.Update(Event("slow", v1::RunState::QUEUED, 0));
  now_ += absl::Seconds(2);
  progress.Update(Event("fast", v1::RunState::DONE, 1000));
  for (int second = 1; second <= 3; ++second) {
    now_ += absl::Seconds(1);
    progress.Update(Event("slow", v1::RunState::RUNNING, second));
  }
  // 1,003 steps in 5 s, but the slow run makes one a second.
  EXPECT_THAT(progress.Line(), ::testing::HasSubstr("200 steps/s   ETA 16 min 37 s"));
}

TEST_F(ProgressTest, ShowsNoTimeLeftWithoutARate) {
  Progress progress = Make(true);
  progress.Update(Event("a", v1::RunState::RUNNING, 100));
  now_ += absl::Milliseconds(600);
  progress.Update(Event("a", v1::RunState::RUNNING, 200));
  EXPECT_EQ(progress.Line(), "0/0 ended");
}

TEST_F(ProgressTest, IsNotMisledByASlowRunThatHasEnded) {
  Progress progress = Make(true);
  progress.Update(Event("slow", v1::RunState::RUNNING, 900));
  progress.Update(Event("fast", v1::RunState::QUEUED, 0));
  now_ += absl::Seconds(15);
  progress.Update(Event("slow", v1::RunState::DONE, 1000));
  for (int second = 0; second < 2; ++second) {
    now_ += absl::Seconds(1);
    progress.Update(Event("fast", v1::RunState::RUNNING, 100 + 100 * second));
  }
  EXPECT_THAT(progress.Line(), ::testing::HasSubstr("ETA 8 s"));
}

TEST_F(ProgressTest, SaysAtOnceThatAnExperimentStallsAndGoesOn) {
  Progress progress = Make(false);
  counts_.set_running(1);
  progress.Update(Event("a", v1::RunState::RUNNING, 500));
  EXPECT_EQ(out_.str(), "");
  v1::ExperimentEvent stall;
  stall.set_stalled("disk full");
  *stall.mutable_counts() = counts_;
  progress.Update(stall);
  progress.Update(stall);
  EXPECT_THAT(out_.str(), ::testing::EndsWith("0/1 ended, 1 running   STALLED: disk full\n"));
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  progress.Update(Event("a", v1::RunState::RUNNING, 600));
  EXPECT_THAT(out_.str(), ::testing::EndsWith("0/1 ended, 1 running\n"));
}

TEST_F(ProgressTest, CountsARunThatCellsShareOnce) {
  Progress progress = Make(true);
  counts_.set_running(2);
  progress.Update(Event("a", v1::RunState::RUNNING, 0, "r"));
  progress.Update(Event("b", v1::RunState::RUNNING, 0, "r"));
  now_ += absl::Seconds(10);
  progress.Update(Event("a", v1::RunState::RUNNING, 500, "r"));
  progress.Update(Event("b", v1::RunState::RUNNING, 500, "r"));
  EXPECT_THAT(progress.Line(), ::testing::HasSubstr("50 steps/s   ETA 10 s"));
}

TEST_F(ProgressTest, ShowsNoRateWhenARunWasRewound) {
  Progress progress = Make(true);
  progress.Update(Event("a", v1::RunState::RUNNING, 800));
  now_ += absl::Seconds(5);
  progress.Update(Event("a", v1::RunState::QUEUED, 300));
  EXPECT_THAT(progress.Line(), ::testing::Not(::testing::HasSubstr("steps/s")));
}

TEST_F(ProgressTest, ForgetsRatesOfLongAgo) {
  Progress progress = Make(true);
  progress.Update(Event("a", v1::RunState::RUNNING, 0));
  now_ += absl::Seconds(1);
  progress.Update(Event("a", v1::RunState::RUNNING, 500));
  for (int i = 1; i <= 30; ++i) {
    now_ += absl::Seconds(1);
    progress.Update(Event("a", v1::RunState::RUNNING, 500 + i));
  }
  EXPECT_THAT(progress.Line(), ::testing::HasSubstr("   1 steps/s"));
}

TEST_F(ProgressTest, RewritesOneLineAtMostTenTimesASecondOnATerminal) {
  Progress progress = Make(true, 20);
  counts_.set_running(1);
  for (int i = 0; i < 100; ++i) {
    progress.Update(Event("a", v1::RunState::RUNNING, i));
    now_ += absl::Milliseconds(10);
  }
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 10);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
  EXPECT_THAT(text, ::testing::StartsWith("\r\x1b[Kexp-1  0/1 ended, …"));
  progress.Finish();
  EXPECT_THAT(out_.str(), ::testing::EndsWith(" ended, …\n"));
}

TEST_F(ProgressTest, PrintsALineForEachTenthOfTheWorkElsewhere) {
  Progress progress = Make(false);
  counts_.set_done(2);
  counts_.set_queued(8);
  for (int i = 0; i < 10; ++i) {  // two ended before watching began
    progress.Update(Event(std::to_string(i), i < 2 ? v1::RunState::DONE : v1::RunState::QUEUED,
                          i < 2 ? 1000 : 0));
  }
  EXPECT_EQ(out_.str(), "");
  for (int i = 2; i < 10; ++i) {
    for (const uint32_t step : {100, 500, 900}) {
      progress.Update(Event(std::to_string(i), v1::RunState::RUNNING, step));
    }
    counts_.set_done(counts_.done() + 1);
    counts_.set_queued(counts_.queued() - 1);
    progress.Update(Event(std::to_string(i), v1::RunState::DONE, 1000));
  }
  progress.Finish();
  EXPECT_EQ(out_.str(),
            "exp-1  3/10 ended\nexp-1  4/10 ended\nexp-1  5/10 ended\nexp-1  6/10 ended\n"
            "exp-1  7/10 ended\nexp-1  8/10 ended\nexp-1  9/10 ended\nexp-1  10/10 ended\n");
}

TEST_F(ProgressTest, CountsStepsOfOneLongRunElsewhere) {
  Progress progress = Make(false);
  counts_.set_running(1);
  for (uint32_t step = 0; step < 1000; step += 10) {
    progress.Update(Event("a", v1::RunState::RUNNING, step));
    now_ += absl::Seconds(1);
  }
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
  progress.Update(Event("a", v1::RunState::RUNNING, 500));  // rewound
  EXPECT_EQ(out_.str(), text);
}

TEST_F(ProgressTest, PrintsALineForEachRunThatFailsElsewhere) {
  Progress progress = Make(false);
  counts_.set_running(20);
  progress.Update(Event("a", v1::RunState::FAILED, 1000));  // failed before watching began
  progress.Update(Event("b", v1::RunState::RUNNING, 10));
  progress.Update(Event("c", v1::RunState::RUNNING, 10));
  progress.Update(Event("b", v1::RunState::DIVERGED, 20));
  EXPECT_EQ(out_.str(), "exp-1  0/20 ended, 20 running\n");
  progress.Update(Event("c", v1::RunState::FAILED, 20));
  progress.Update(Event("c", v1::RunState::FAILED, 20));
  EXPECT_EQ(out_.str(), "exp-1  0/20 ended, 20 running\nc  FAILED\n");
}

TEST_F(ProgressTest, PrintsALineEveryTenMinutesElsewhere) {
  Progress progress = Make(false);
  counts_.set_running(1);
  for (int i = 0; i < 21; ++i) {
    progress.Update(Event("a", v1::RunState::RUNNING, 0));
    now_ += absl::Minutes(1);
  }
  EXPECT_EQ(out_.str(), "exp-1  0/1 ended, 1 running\nexp-1  0/1 ended, 1 running\n");
}

}  // namespace
}  // namespace ablate::client
