// Tests the number of lanes on simulated devices.
#include "server/worker/lane_governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace ablate::worker {
namespace {

// A run's steps per second alone, and its number of steps.
struct SimulatedRun {
  double speed = 100;
  double steps = 1e9;
};

// A device with as many runs as lanes. Each makes `share(n)` times its own speed beside n - 1
// others, after a start without steps.
class SimulatedDevice {
 public:
  SimulatedDevice(int most, std::function<double(int)> share)
      : governor(most), share_(std::move(share)) {}

  // Lets time pass, second by second, until the governor has seen `seconds` more of them.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) PassSecond();
  }

  LaneGovernor governor;
  std::function<SimulatedRun()> next = [] { return SimulatedRun(); };
  size_t most_runs = 1000;  // at the same time
  double start = 2;         // seconds
  double noise = 0;
  std::vector<int> numbers = {1};  // of lanes, each change
  absl::Duration now;

 private:
  struct Running {
    std::string id;
    SimulatedRun run;
    double starts = 0;  // seconds left
    double made = 0;
  };

  void FillLanes() {
    const auto lanes = static_cast<size_t>(governor.lanes());
    while (running_.size() < std::min(lanes, most_runs)) {
      running_.push_back({std::to_string(++begun_), next(), start});
    }
  }

  void PassSecond() {
    FillLanes();
    const double share = share_(static_cast<int>(running_.size()));
    std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
    std::vector<LaneJob> jobs;
    for (Running& one : running_) {
      const double trains = std::clamp(1 - one.starts, 0.0, 1.0);
      one.starts -= 1 - trains;
      one.made += trains * share * one.run.speed * factor(random_);
    }
    std::erase_if(running_, [](const Running& one) { return one.made >= one.run.steps; });
    FillLanes();
    for (const Running& one : running_) jobs.push_back({one.id, static_cast<uint64_t>(one.made)});
    now += absl::Seconds(1);
    governor.Observe(now, jobs);
    if (governor.lanes() != numbers.back()) numbers.push_back(governor.lanes());
  }

  const std::function<double(int)> share_;
  std::vector<Running> running_;
  int begun_ = 0;
  std::mt19937 random_{1};
};

// Each run is as fast as alone up to `lanes` runs; then they share.
std::function<double(int)> LaunchBoundUpTo(double lanes) {
  return [lanes](int n) { return std::min(1.0, lanes / n); };
}

using Numbers = std::vector<int>;

TEST(LaneGovernorTest, AddsLanesWhileThroughputGrows) {
  SimulatedDevice device(16, LaunchBoundUpTo(4));
  device.Pass(60);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 8, 4}));
}

TEST(LaneGovernorTest, FindsTheLanesOfAnH100) {
  // Rates of one lane and of sixteen as measured: names 1,450 and 8,389 steps/s, 4 layers of width
  // 128 766 and 1,595.
  for (const auto& [rest, lanes] : {std::pair(.133, 16), std::pair(.804, 8)}) {
    SimulatedDevice device(16, [rest = rest](int n) { return (1 + rest) / (1 + rest * n); });
    device.noise = .02;
    device.Pass(120);
    EXPECT_EQ(device.governor.lanes(), lanes);
  }
}

TEST(LaneGovernorTest, TakesALimitBetweenPowersOfTwo) {
  SimulatedDevice device(6, LaunchBoundUpTo(100));
  device.Pass(45);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 6}));
  SimulatedDevice single(1, LaunchBoundUpTo(100));
  single.Pass(300);
  EXPECT_EQ(single.numbers, (Numbers{1}));
}

TEST(LaneGovernorTest, KeepsOneLaneOnABusyDevice) {
  SimulatedDevice device(16, LaunchBoundUpTo(1));
  device.Pass(600);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 1}));
}

TEST(LaneGovernorTest, TriesAgainAfterTenMinutes) {
  SimulatedDevice device(16, LaunchBoundUpTo(1.05));
  device.next = [] { return SimulatedRun{100, 5000}; };
  device.Pass(600);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 1}));
  device.Pass(120);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 1, 2, 1}));
}

TEST(LaneGovernorTest, ComparesEachRunWithItself) {
  // Four lanes are the best, whether slow or fast runs come in addition.
  for (const double first : {1.0, 1000.0}) {
    SimulatedDevice device(16, LaunchBoundUpTo(4));
    int made = 0;
    device.next = [&] { return SimulatedRun{made++ % 2 == 0 ? 10 * first : 10'000 / first}; };
    device.Pass(120);
    EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 8, 4}));
  }
}

TEST(LaneGovernorTest, MeasuresSlowRunsForLonger) {
  SimulatedDevice device(4, LaunchBoundUpTo(2));
  device.next = [] { return SimulatedRun{.8}; };
  device.Pass(15);
  EXPECT_EQ(device.numbers, (Numbers{1})) << "20 steps take 25 seconds";
  device.Pass(200);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 2}));
}

TEST(LaneGovernorTest, MeasuresAmongRunsThatEnd) {
  // Each run takes 30 seconds: some last through a change, others don't.
  for (const double best : {1.0, 4.0}) {
    SimulatedDevice device(16, LaunchBoundUpTo(best));
    device.next = [] { return SimulatedRun{100, 2800}; };
    device.Pass(500);
    EXPECT_GE(device.governor.lanes(), best);
    EXPECT_LE(device.governor.lanes(), 2 * best);
    EXPECT_LE(device.numbers.size(), 8u);
  }
}

TEST(LaneGovernorTest, AddsLanesForRunsTooShortToMeasure) {
  for (const double start : {2.0, .1}) {
    SimulatedDevice device(16, LaunchBoundUpTo(16));
    device.start = start;
    device.next = [start] { return SimulatedRun{1000, 1000 * start}; };
    device.Pass(60);
    EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 8, 16}));
  }
}

TEST(LaneGovernorTest, MeasuresALongRunAmongShortOnes) {
  for (const double best : {1.0, 16.0}) {
    SimulatedDevice device(16, LaunchBoundUpTo(best));
    int made = 0;
    device.next = [&] { return made++ == 0 ? SimulatedRun{100, 1e9} : SimulatedRun{1000, 1500}; };
    device.Pass(300);
    EXPECT_EQ(device.governor.lanes(), best);
  }
}

TEST(LaneGovernorTest, DoesNotTakeRunsThatWaitForThoseThatTrain) {
  LaneGovernor governor(16);
  for (uint64_t second = 0; second < 300; ++second) {
    std::vector<LaneJob> jobs = {{"trains", 100 * second}};
    for (int i = 1; i < governor.lanes(); ++i) jobs.push_back({std::to_string(i), 0});
    governor.Observe(absl::Seconds(second), jobs);
  }
  EXPECT_EQ(governor.lanes(), 2);
}

TEST(LaneGovernorTest, AddsLanesWhenNoRunLastsThroughAChange) {
  SimulatedDevice device(2, LaunchBoundUpTo(2));
  device.next = [] { return SimulatedRun{100, 1000}; };  // 12 seconds each
  device.Pass(120);
  EXPECT_EQ(device.governor.lanes(), 2);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 1, 2})) << "the second attempt counts";
}

TEST(LaneGovernorTest, NeedsAsManyRunsAsLanes) {
  SimulatedDevice device(16, LaunchBoundUpTo(16));
  device.most_runs = 3;
  device.Pass(600);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4}));
}

TEST(LaneGovernorTest, WaitsForRunsThatDontBegin) {
  LaneGovernor governor(16);
  for (int second = 0; second < 300; ++second) {
    governor.Observe(absl::Seconds(second), {{"waits for memory", 0}});
  }
  EXPECT_EQ(governor.lanes(), 1);
}

TEST(LaneGovernorTest, WithstandsNoise) {
  for (const double best : {1.0, 2.0, 4.0, 8.0}) {
    SimulatedDevice device(16, LaunchBoundUpTo(best));
    device.noise = .05;
    device.next = [] { return SimulatedRun{100, 9000}; };
    device.Pass(3600);
    EXPECT_EQ(device.governor.lanes() == best || device.governor.lanes() == 2 * best, true);
    const auto most = *std::max_element(device.numbers.begin(), device.numbers.end());
    EXPECT_EQ(most, 2 * best);
    // The way up, and one attempt every ten minutes.
    EXPECT_LE(device.numbers.size(), std::log2(best) + 3 + 2 * 6);
  }
}

TEST(LaneGovernorTest, TriesAgainOnceRunsAreOthers) {
  SimulatedDevice device(16, LaunchBoundUpTo(2));
  double speed = 100;
  device.next = [&] { return SimulatedRun{speed, 50 * speed}; };
  device.Pass(60);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 2}));
  device.Pass(200);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 2})) << "other runs of the same speed";
  speed = 1000;
  device.Pass(150);
  EXPECT_EQ(device.numbers, (Numbers{1, 2, 4, 2, 4, 2}));
}

TEST(LaneGovernorTest, DoesNotFlapBetweenRunsOfTwoKinds) {
  SimulatedDevice device(16, LaunchBoundUpTo(2));
  int made = 0;
  device.next = [&] {
    const double speed = made++ / 4 % 2 == 0 ? 100 : 1000;
    return SimulatedRun{speed, 40 * speed};
  };
  device.Pass(3600);
  EXPECT_LE(device.numbers.size(), 3600u / 60 * 2);
  EXPECT_LE(*std::max_element(device.numbers.begin(), device.numbers.end()), 8);
}

TEST(LaneGovernorTest, ShrinksWhenARunIsOutOfMemory) {
  SimulatedDevice device(16, LaunchBoundUpTo(16));
  device.Pass(60);
  ASSERT_EQ(device.governor.lanes(), 16);
  device.governor.OutOfMemory(device.now);
  EXPECT_EQ(device.governor.lanes(), 8);
  device.governor.OutOfMemory(device.now + absl::Seconds(1));
  EXPECT_EQ(device.governor.lanes(), 8) << "runs that fail together count once";
  device.Pass(550);
  EXPECT_EQ(device.governor.lanes(), 8);
  for (int i = 0; i < 10; ++i) {
    device.governor.OutOfMemory(device.now);
    device.Pass(40);
  }
  EXPECT_EQ(device.governor.lanes(), 1);
}

}  // namespace
}  // namespace ablate::worker
