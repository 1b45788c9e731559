// Tests lanes: threads of one process, each training on one core.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

// Large enough that LibTorch would split a step among threads if it could.
RunConfig LaneRun(uint32_t seed) {
  RunConfig run = RecallRun(seed, NormPlacement::kPost);
  run.training.steps = 6;
  run.evaluation.every = 6;
  run.evaluation.batches = 1;
  return run;
}

std::ptrdiff_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(LaneTest, TrainsAloneOnItsThreadWithTheNumbersOfASingleLane) {
  std::vector<std::vector<std::string>> alone, together(2);
  for (uint32_t lane = 0; lane < 2; ++lane) {
    std::thread([&alone, lane] {
      alone.push_back(Exactly(Advance(*MustMakeTrainer(LaneRun(lane)), 6).points));
    }).join();
  }
  std::atomic<int> training{2};
  std::vector<std::thread> lanes;
  const std::ptrdiff_t before = ThreadsOfThisProcess();
  for (uint32_t lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&together, &training, lane] {
      together[lane] = Exactly(Advance(*MustMakeTrainer(LaneRun(lane)), 6).points);
      --training;
    });
  }
  std::ptrdiff_t most = 0;
  while (training > 0) most = std::max(most, ThreadsOfThisProcess());
  for (std::thread& lane : lanes) lane.join();
  EXPECT_LE(most, before + 2);
  EXPECT_EQ(together[0], alone[0]);
  EXPECT_EQ(together[1], alone[1]);
  EXPECT_NE(alone[0], alone[1]);
}

}  // namespace
}  // namespace ablate::engine
