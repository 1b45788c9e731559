// Tests the live screen of an experiment: exact text at three widths, and what gives way in small
// windows.
#include "client/output/experiment_screen.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/output/screen_parts.h"
#include "client/output/terminal_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr absl::Time kNow = absl::UnixEpoch();

template <class Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

ExperimentView Example() {
  ExperimentView view;
  view.experiment = Parse<v1::Experiment>(R"(
    name: "experiments/names-norm-7f3k"
    spec {
      question: "Does norm placement matter once each variant has its own learning rate?"
      axes { name: "norm" }
      axes { name: "lr" tune: true }
    }
  )");
  view.event = Parse<v1::ExperimentEvent>(R"(
    counts { done: 84 diverged: 1 failed: 1 running: 2 queued: 92 }
    snapshot {
      fraction: 0.4833
      steps_per_second: 2315.4
      time_left { seconds: 80 }
      lanes {
        cell: "post-lr0.01-s43"
        step: 123456
        steps: 1000000
        training { steps_per_second: 1234.4 losses: [ 4, 3, 2, 3.5, 2, 1, 1.5, 1.25 ] }
      }
      lanes { cell: "none-of-the-usual-names-lr0.001-s100" step: 5 steps: 1000000 }
      settings {
        labels { key: "norm" value: "none" }
        labels { key: "lr" value: "0.001" }
        mean: 2.4123
        n: 3
        cells: 12
        diverged: 1
      }
      settings {
        labels { key: "norm" value: "pre" }
        labels { key: "lr" value: "0.01" }
        mean: 2.4791
        n: 12
        cells: 12
      }
      settings {
        labels { key: "norm" value: "post, in a block with a very long label" }
        cells: 12
      }
    }
  )");
  return view;
}

// The example once it has ended.
ExperimentView EndedExample() {
  ExperimentView view = Example();
  view.ended = true;
  view.event = Parse<v1::ExperimentEvent>("counts { done: 180 } snapshot { fraction: 1 }");
  view.comparison = Parse<v1::Comparison>(R"(
    key: "eval/loss"
    rows {
      label: "pre"
      mean: 2.4791
      n: 12
      chosen { labels { key: "lr" value: "0.003" } seeds: 2 }
      chosen { labels { key: "lr" value: "0.01" } seeds: 10 }
    }
    rows { label: "post, in a block with a very long label" }
    rows {
      label: "none"
      mean: 2.4123
      n: 3
      diverged: 1
      chosen { labels { key: "lr" value: "0.001" } seeds: 12 }
    }
    verdict {
      text: "held-out loss against “pre”: “post” is worse (higher by 0.095 [0.071, 0.119])."
    }
  )");
  return view;
}

std::string Draw(const ExperimentView& view, int width, int height = 24) {
  return absl::StrCat("\n", absl::StrJoin(ExperimentScreen(view, width, height, kNow), "\n"), "\n");
}

TEST(ExperimentScreenTest, CutsNamesAndTheQuestionAt60Columns) {
  EXPECT_EQ(Draw(Example(), 60), R"(
names-norm-7f3k   Does norm placement matter once each vari…
███████████░░░░░░░░░░░░  48 %  ETA 1 min 20 s  2,315 steps/s
86 of 180 ended, 2 training, 92 queued, 1 diverged, 1 failed

training                      step  steps/s   loss
post-lr0.01-s43  123,456/1,000,000    1,234  1.250  █▆▃▇▃▁▂▁
none-o…001-s100        5/1,000,000

eval/loss, preliminary
setting                   mean      n  diverged  best so far
none                     2.412   3/12         1  lr 0.001
pre                      2.479  12/12         0  lr 0.01
post, in a block with …      —   0/12         0

Ctrl-C leaves it running; `ablate watch names-norm-7f3k`
shows it again
)");
}

TEST(ExperimentScreenTest, Fits80Columns) {
  EXPECT_EQ(Draw(Example(), 80), R"(
names-norm-7f3k   Does norm placement matter once each variant has its own lear…
███████████████████▎░░░░░░░░░░░░░░░░░░░░  48 %  ETA 1 min 20 s  2,315 steps/s
86 of 180 ended, 2 training, 92 queued, 1 diverged, 1 failed

training                                          step  steps/s   loss
post-lr0.01-s43                      123,456/1,000,000    1,234  1.250  █▆▃▇▃▁▂▁
none-of-the-usual-names-lr…001-s100        5/1,000,000

eval/loss, preliminary
setting                                   mean      n  diverged  best so far
none                                     2.412   3/12         1  lr 0.001
pre                                      2.479  12/12         0  lr 0.01
post, in a block with a very long label      —   0/12         0

Ctrl-C leaves it running; `ablate watch names-norm-7f3k` shows it again
)");
}

TEST(ExperimentScreenTest, ShowsNamesWholeAt160Columns) {
  EXPECT_EQ(Draw(Example(), 160), R"(
names-norm-7f3k   Does norm placement matter once each variant has its own learning rate?
███████████████████▎░░░░░░░░░░░░░░░░░░░░  48 %  ETA 1 min 20 s  2,315 steps/s
86 of 180 ended, 2 training, 92 queued, 1 diverged, 1 failed

training                                           step  steps/s   loss
post-lr0.01-s43                       123,456/1,000,000    1,234  1.250  █▆▃▇▃▁▂▁
none-of-the-usual-names-lr0.001-s100        5/1,000,000

eval/loss, preliminary
setting                                   mean      n  diverged  best so far
none                                     2.412   3/12         1  lr 0.001
pre                                      2.479  12/12         0  lr 0.01
post, in a block with a very long label      —   0/12         0

Ctrl-C leaves it running; `ablate watch names-norm-7f3k` shows it again
)");
}

TEST(ExperimentScreenTest, ShowsTheVerdictAtTheEnd) {
  EXPECT_EQ(Draw(EndedExample(), 60, 0), R"(
names-norm-7f3k   Does norm placement matter once each vari…
████████████████████████████████████████  100 %
180 of 180 ended

eval/loss
setting              mean   n  diverged  chosen
none                2.412   3         1  lr 0.001
pre                 2.479  12         0  lr 0.01 ×10, lr 0.…
post, in a block …      —   0         0

held-out loss against “pre”: “post” is worse (higher by
0.095 [0.071, 0.119]).
)");
}

TEST(ExperimentScreenTest, IsNeverWiderThanTheWindow) {
  ExperimentView view = Example();
  view.event.set_stalled("disk full");
  *view.event.mutable_analyses() = Parse<v1::AnalysisCounts>("planned: true done: 30 failed: 2");
  for (int width = 40; width <= 200; ++width) {
    for (const std::string& line : ExperimentScreen(view, width, 40, kNow)) {
      EXPECT_LE(DisplayWidth(line), width) << line;
    }
    const std::string text = Draw(view, width, 40);
    for (const char* number :
         {"123,456/1,000,000", "2.479", "12/12", "86 of 180", "48 %", "1.25"}) {
      EXPECT_THAT(text, HasSubstr(number)) << width;
    }
  }
}

TEST(ExperimentScreenTest, IsNeverHigherThanTheWindow) {
  ExperimentView view = Example();
  for (int i = 0; i < 30; ++i) {
    view.event.mutable_snapshot()->add_lanes()->set_cell(absl::StrCat("lane-", i));
    v1::SettingMean* setting = view.event.mutable_snapshot()->add_settings();
    (*setting->mutable_labels())["norm"] = absl::StrCat("setting-", i);
  }
  for (int height = 1; height <= 80; ++height) {
    const auto lines = ExperimentScreen(view, 80, height, kNow);
    EXPECT_LE(lines.size(), static_cast<size_t>(height));
    EXPECT_THAT(lines[0], StartsWith("names-norm-7f3k"));
    if (height > 12) {
      EXPECT_EQ(lines.size(), static_cast<size_t>(std::min(height, 75))) << height;
    }
  }
  const std::string text = Draw(view, 80, 24);
  EXPECT_THAT(text, HasSubstr("\n… 27 more\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\nnone                                     2.412   3/12"));  // the best setting stays
  EXPECT_THAT(text, HasSubstr("Ctrl-C leaves it running"));
}

TEST(ExperimentScreenTest, KeepsTheLastMeansIfThereIsNoComparison) {
  ExperimentView view = Example();
  view.ended = true;
  const std::string text = Draw(view, 80);
  EXPECT_THAT(text, HasSubstr("\npre                                      2.479  12/12"));
  EXPECT_THAT(text, Not(HasSubstr("preliminary")));
}

TEST(ExperimentScreenTest, ShowsNoTimeLeftThatIsNotKnown) {
  ExperimentView view = Example();
  view.event.mutable_snapshot()->clear_time_left();
  EXPECT_THAT(Draw(view, 80), HasSubstr("  48 %\n"));
}

TEST(ExperimentScreenTest, ShowsStepsOfARunWhoseNumberOfStepsIsNotKnown) {
  ExperimentView view = Example();
  v1::Snapshot& snapshot = *view.event.mutable_snapshot();
  snapshot.clear_time_left();
  snapshot.mutable_lanes(0)->clear_steps();
  const std::string text = Draw(view, 80);
  EXPECT_THAT(text, HasSubstr(" 123,456 "));
  for (const char* absent : {"123,456/", "ETA", "nan"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
}

TEST(ExperimentScreenTest, ShowsAnalysesOnceTheyAreKnown) {
  ExperimentView view = Example();
  view.event.mutable_analyses();
  EXPECT_THAT(Draw(view, 80), HasSubstr("1 failed; analyses follow\nthe runs\n"));
  view.ended = true;
  EXPECT_THAT(Draw(view, 80), HasSubstr("; no analyses\n"));
}

TEST(ExperimentScreenTest, SaysThatTheConnectionIsLost) {
  ExperimentView view = Example();
  view.lost = kNow - absl::Seconds(7);
  const std::string text = Draw(view, 80);
  EXPECT_THAT(text, HasSubstr("\nconnection lost 7 s ago; trying again."));
  EXPECT_THAT(text, Not(HasSubstr("ETA")));
}

TEST(ExperimentScreenTest, ShowsTextsOfOthersWithoutControlCharacters) {
  ExperimentView view = Example();
  view.experiment.mutable_spec()->set_question("why\x1b[2J\n?");
  view.experiment.mutable_spec()->mutable_report()->set_primary("e\x07");
  view.event.set_stalled("\x1b]0;title\x07");
  v1::Snapshot& snapshot = *view.event.mutable_snapshot();
  snapshot.mutable_lanes(0)->set_cell("a\x1b[31mb");
  (*snapshot.mutable_settings(0)->mutable_labels())["norm"] = "c\rd";
  for (const std::string& line : ExperimentScreen(view, 80, 40, kNow)) {
    EXPECT_EQ(line, Printable(line));
  }
  EXPECT_THAT(Draw(view, 80, 40), HasSubstr("   why\\x1b[2J ?\n"));
}

TEST(ExperimentScreenTest, PutsTheBestSettingFirstByTheMetricsDirection) {
  ExperimentView view = EndedExample();
  view.comparison.set_better(v1::Better::higher);
  const std::string text = Draw(view, 80);
  EXPECT_LT(text.find("\npre "), text.find("\nnone "));
  EXPECT_LT(text.find("\nnone "), text.find("\npost, "));
}

TEST(ScreenPartsTest, DrawsBarsInEighthsOfAColumn) {
  EXPECT_EQ(Bar(0, 4), "░░░░");
  EXPECT_EQ(Bar(0.5, 4), "██░░");
  EXPECT_EQ(Bar(0.53125, 4), "██▏░");
  EXPECT_EQ(Bar(1, 4), "████");
  EXPECT_EQ(Bar(7, 4), "████");
}

TEST(ScreenPartsTest, DrawsCurvesBetweenTheirExtremes) {
  EXPECT_EQ(Sparkline({}, 8), "");
  EXPECT_EQ(Sparkline({5}, 8), "▁");
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline({0, 0, 7, 7}, 2), "▁█");
  EXPECT_EQ(Sparkline({1, std::numeric_limits<double>::quiet_NaN(), 0}, 8), "█ ▁");
}

TEST(ScreenPartsTest, KeepsTheSeedOfAShortenedName) {
  EXPECT_EQ(ShortenMiddle("short-s1", 20), "short-s1");
  EXPECT_EQ(ShortenMiddle("placementpre-lr0.003-s12", 20), "placementpr….003-s12");
  EXPECT_EQ(ShortenMiddle("placementpre-lr0.003-s12", 10), "placement…");
}

TEST(ScreenPartsTest, FitsBlocksByTakingRowsFromTheLargest) {
  const ScreenBlock top = {{}, {"a", "b"}, true};
  const ScreenBlock large = {{"title"}, {"1", "2", "3", "4"}};
  const ScreenBlock small = {{"other"}, {"x", "y"}};
  EXPECT_THAT(FitBlocks({top, {}, large}, 0),
              ElementsAre("a", "b", "", "title", "1", "2", "3", "4"));
  EXPECT_THAT(FitBlocks({top, large, small}, 11),
              ElementsAre("a", "b", "", "title", "1", "2", "… 2 more", "", "other", "x", "y"));
  EXPECT_THAT(FitBlocks({top, large, small}, 7),
              ElementsAre("a", "b", "", "title", "1", "2", "… 2 more"));
  EXPECT_THAT(FitBlocks({top, large}, 1), ElementsAre("a"));
}

}  // namespace
}  // namespace ablate::client
