// Tests progress on a terminal and elsewhere, with a clock of the test's own.
#include "client/output/progress.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  Progress Make(bool live, int width = 200) {
    ProgressOptions options;
    options.name = "exp-1";
    options.line = {live, width, &out_, [this] { return now_; }};
    return Progress(options);
  }

  v1::ExperimentEvent Event(double fraction) {
    v1::ExperimentEvent event;
    *event.mutable_counts() = counts_;
    event.mutable_snapshot()->set_fraction(fraction);
    for (const std::string& cell : failed_) event.mutable_snapshot()->add_failed(cell);
    return event;
  }

  std::ostringstream out_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  v1::RunCounts counts_;
  std::vector<std::string> failed_;
};

TEST_F(ProgressTest, ShowsCountsRateTimeLeftAndMetric) {
  Progress progress = Make(true);
  counts_.set_queued(1);
  counts_.set_running(1);
  counts_.set_done(2);
  counts_.set_failed(1);
  v1::ExperimentEvent event = Event(.5);
  progress.Update(event);
  EXPECT_EQ(progress.Line(), "3/5 ended, 1 running, 1 failed");
  event.mutable_snapshot()->set_steps_per_second(1234.5);
  event.mutable_snapshot()->mutable_time_left()->set_seconds(13);
  v1::CellValue* newest = event.mutable_snapshot()->mutable_newest();
  newest->set_cell("a");
  newest->set_key("train/loss");
  newest->set_value(2.123456);
  progress.Update(event);
  EXPECT_EQ(progress.Line(),
            "3/5 ended, 1 running, 1 failed   1,234 steps/s   ETA 13 s   train/loss 2.123 of a");
  event.set_stalled("disk full");
  progress.Update(event);
  EXPECT_EQ(progress.Line(),
            "3/5 ended, 1 running, 1 failed   STALLED: disk full   train/loss 2.123 of a");
}

TEST_F(ProgressTest, SaysAtOnceThatAnExperimentStallsAndGoesOn) {
  Progress progress = Make(false);
  counts_.set_running(1);
  progress.Update(Event(.01));
  EXPECT_EQ(out_.str(), "");
  v1::ExperimentEvent stall = Event(.01);
  stall.set_stalled("disk full");
  progress.Update(stall);
  progress.Update(stall);
  EXPECT_EQ(out_.str(), "exp-1  0/1 ended, 1 running   STALLED: disk full\n");
  progress.Update(Event(.02));
  EXPECT_THAT(out_.str(), ::testing::EndsWith("disk full\nexp-1  0/1 ended, 1 running\n"));
}

TEST_F(ProgressTest, ShowsAnalysesOnceAllRunsHaveEnded) {
  Progress progress = Make(true);
  counts_.set_done(1);
  counts_.set_running(1);
  v1::ExperimentEvent event = Event(.5);
  event.mutable_analyses()->set_planned(true);
  event.mutable_analyses()->set_queued(3);
  event.mutable_analyses()->set_done(1);
  progress.Update(event);
  EXPECT_EQ(progress.Line(), "1/2 ended, 1 running");
  event.mutable_counts()->set_running(0);
  progress.Update(event);
  EXPECT_EQ(progress.Line(), "1/1 ended   1 of 4 analyses");
}

TEST_F(ProgressTest, RewritesOneLineAtMostTenTimesASecondOnATerminal) {
  Progress progress = Make(true, 20);
  counts_.set_running(1);
  for (int i = 0; i < 100; ++i) {
    progress.Update(Event(i / 1000.0));
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
  counts_.set_done(2);  // before watching began
  counts_.set_queued(8);
  progress.Update(Event(.2));
  EXPECT_EQ(out_.str(), "");
  for (int i = 2; i < 10; ++i) {
    for (const double part : {.1, .5, .9}) progress.Update(Event((i + part) / 10));
    counts_.set_done(counts_.done() + 1);
    counts_.set_queued(counts_.queued() - 1);
    progress.Update(Event((i + 1) / 10.0));
  }
  progress.Update(Event(.5));  // rewound
  counts_.set_done(10);
  progress.Update(Event(1));
  progress.Finish();
  EXPECT_EQ(out_.str(),
            "exp-1  3/10 ended\nexp-1  4/10 ended\nexp-1  5/10 ended\nexp-1  6/10 ended\n"
            "exp-1  7/10 ended\nexp-1  8/10 ended\nexp-1  9/10 ended\nexp-1  10/10 ended\n");
}

TEST_F(ProgressTest, PrintsALineForEachRunThatFailsElsewhere) {
  Progress progress = Make(false);
  failed_ = {"a"};  // before watching began
  progress.Update(Event(.01));
  EXPECT_EQ(out_.str(), "");
  failed_ = {"a", "c"};
  progress.Update(Event(.02));
  progress.Update(Event(.02));
  EXPECT_EQ(out_.str(), "c  FAILED\n");
}

TEST_F(ProgressTest, PrintsALineEveryTenMinutesElsewhere) {
  Progress progress = Make(false);
  counts_.set_running(1);
  for (int i = 0; i < 21; ++i) {
    progress.Update(Event(0));
    now_ += absl::Minutes(1);
  }
  EXPECT_EQ(out_.str(), "exp-1  0/1 ended, 1 running\nexp-1  0/1 ended, 1 running\n");
}

}  // namespace
}  // namespace ablate::client
