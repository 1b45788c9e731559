// Tests the live screen of a server.
#include "client/output/top_screen.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/terminal_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Time kTopNow = absl::UnixEpoch();

TopView TopExample() {
  TopView view;
  v1::Snapshot snapshot;
  view.workers = {{"cpu-analysis", "IDLE", 0, 0, "Intel(R) Xeon(R) Processor, 3 lanes"},
                  {"cpu-train", "BUSY", 2, 2, "Intel(R) Xeon(R) Processor, 2 lanes"}};
  view.experiments = {{"names-norm-7f3k", "", 86, 180, 1, 93, 1},
                      {"heads-2b8c", "", 0, 24, 1, 23, 0}};
  view.stalled = "disk full";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    lanes {
      cell: "names-norm-7f3k/post-lr0.01-s43"
      step: 500
      steps: 1000
      training { steps_per_second: 1234 losses: [ 3, 2, 1 ] }
    }
    lanes {
      cell: "heads-2b8c/heads4-s0"
      step: 20000
      steps: 100000
      training { steps_per_second: 3.21 losses: 2.5 }
    }
  )",
                                                            &snapshot));
  view.lanes = snapshot.lanes();
  return view;
}

std::string DrawTop(int width, int height = 24) {
  return absl::StrCat("\n", absl::StrJoin(TopScreen(TopExample(), width, height, kTopNow), "\n"),
                      "\n");
}

TEST(TopScreenTest, ShowsAnalysesAndTheKeyThatLeaves) {
  TopView view;
  view.experiments = {{"one-7f3k", "", 2, 2, 0, 0, 0, 3}, {"two-2b8c", "", 0, 1, 1, 0, 0}};
  view.queued_analyses = 2;
  view.live = true;
  EXPECT_EQ(absl::StrCat("\n", absl::StrJoin(TopScreen(view, 80, 24, kTopNow), "\n"), "\n"), R"(
0 of 0 lanes training, 0 runs queued, 2 experiments active, 2 analyses queued

experiment  ended  training  queued  analyses left
one-7f3k      2/2         0       0              3
two-2b8c      0/1         1       0

q leaves
)");
}

TEST(TopScreenTest, CutsNamesAt60Columns) {
  EXPECT_EQ(DrawTop(60), R"(
2 of 2 lanes training, 116 runs queued, 2 experiments active
STALLED: disk full

worker        state  lanes  device
cpu-analysis  IDLE          Intel(R) Xeon(R) Processor, 3 l…
cpu-train     BUSY     2/2  Intel(R) Xeon(R) Processor, 2 l…

experiment        ended  training  queued  failed
names-norm-7f3k  86/180         1      93       1
heads-2b8c         0/24         1      23

training                           step  steps/s   loss
names-norm-7f3…0.01-s43       500/1,000    1,234  1.000  █▅▁
heads-2b8c/heads4-s0     20,000/100,000      3.2  2.500  ▁
)");
}

TEST(TopScreenTest, Fits80Columns) {
  EXPECT_EQ(DrawTop(80), R"(
2 of 2 lanes training, 116 runs queued, 2 experiments active
STALLED: disk full

worker        state  lanes  device
cpu-analysis  IDLE          Intel(R) Xeon(R) Processor, 3 lanes
cpu-train     BUSY     2/2  Intel(R) Xeon(R) Processor, 2 lanes

experiment        ended  training  queued  failed
names-norm-7f3k  86/180         1      93       1
heads-2b8c         0/24         1      23

training                                   step  steps/s   loss
names-norm-7f3k/post-lr0.01-s43       500/1,000    1,234  1.000  █▅▁
heads-2b8c/heads4-s0             20,000/100,000      3.2  2.500  ▁
)");
}

TEST(TopScreenTest, ShowsNamesWholeAt160Columns) {
  EXPECT_EQ(DrawTop(160), R"(
2 of 2 lanes training, 116 runs queued, 2 experiments active
STALLED: disk full

worker        state  lanes  device
cpu-analysis  IDLE          Intel(R) Xeon(R) Processor, 3 lanes
cpu-train     BUSY     2/2  Intel(R) Xeon(R) Processor, 2 lanes

experiment        ended  training  queued  failed
names-norm-7f3k  86/180         1      93       1
heads-2b8c         0/24         1      23

training                                   step  steps/s   loss
names-norm-7f3k/post-lr0.01-s43       500/1,000    1,234  1.000  █▅▁
heads-2b8c/heads4-s0             20,000/100,000      3.2  2.500  ▁
)");
}

TEST(TopScreenTest, StaysInTheWindow) {
  for (int width = 50; width < 200; width += 3) {
    for (int height = 1; height < 30; ++height) {
      const auto lines = TopScreen(TopExample(), width, height, kTopNow);
      EXPECT_LE(lines.size(), static_cast<size_t>(height));
      for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), width) << line;
    }
  }
}

TEST(TopScreenTest, SaysThatTheConnectionIsLost) {
  TopView view = TopExample();
  view.lost = kTopNow - absl::Seconds(3);
  EXPECT_THAT(absl::StrJoin(TopScreen(view, 80, 24, kTopNow), "\n"),
              HasSubstr("\nconnection lost 3 s ago; trying again\n"));
}

}  // namespace
}  // namespace ablate::client
