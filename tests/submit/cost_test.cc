// Tests predictions of the cost of training.
#include "server/submit/cost.h"

#include <gtest/gtest.h>

namespace ablate::submit {
namespace {

StepTime Measured(double micros) {
  return [micros](absl::string_view) { return std::optional<double>(micros); };
}
absl::StatusOr<std::optional<double>> Unknown(absl::string_view) { return std::nullopt; }

Capacity Cores(uint32_t lanes, uint64_t last_states_bytes = 0) {
  return {{{"cpu", lanes}}, last_states_bytes};
}

TEST(EstimateCostTest, CostsNothingForNothing) {
  const auto cost = EstimateCost({}, Unknown, Cores(2));
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->device_time, absl::ZeroDuration());
  EXPECT_EQ(cost->wall_time, absl::ZeroDuration());
  EXPECT_EQ(cost->bytes, 0u);
}

TEST(EstimateCostTest, UsesMeasuredStepTimes) {
  const auto cost =
      EstimateCost({{"a", 1'000, 0, 5}, {"a", 2'000, 0, 7}}, Measured(2'000), Cores(1));
  ASSERT_TRUE(cost.ok());
  EXPECT_TRUE(cost->measured);
  EXPECT_EQ(cost->device_time, absl::Seconds(6));
  EXPECT_EQ(cost->wall_time, absl::Seconds(6));
  EXPECT_EQ(cost->bytes, 12u);
}

TEST(EstimateCostTest, SpreadsRunsOverLanes) {
  const std::vector<RunCost> runs(5, RunCost{"a", 1'000, 0, 0});
  const auto cost = EstimateCost(runs, Measured(1'000), Cores(2));
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->device_time, absl::Seconds(5));
  EXPECT_EQ(cost->wall_time, absl::Seconds(3));
}

TEST(EstimateCostTest, LetsLanesShareTheWorkOfARun) {
  RunCost run{"a", 1'000, 0, 0};
  run.lanes = 4;
  const auto cost = EstimateCost({run, run}, Measured(1'000), Cores(4));
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->device_time, absl::Seconds(2));
  EXPECT_EQ(cost->wall_time, absl::Seconds(.5));
}

TEST(EstimateCostTest, SpreadsRunsOverLanesOfTheirDevice) {
  std::vector<RunCost> runs(6, RunCost{"a", 1'000, 0, 0, 100});
  for (size_t i = 0; i < 4; ++i) runs[i].device_kind = "cuda";
  const auto cost = EstimateCost(runs, Measured(1'000), {{{"cpu", 8}, {"cuda", 1}}});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->device_time, absl::Seconds(6));
  EXPECT_EQ(cost->wall_time, absl::Seconds(4)) << "the cores don't help";
  EXPECT_EQ(cost->bytes, (2 + 2) * 100u) << "two states of the GPU's lane, and each run's here";
}

TEST(EstimateCostTest, CountsResumeStatesOfRunsThatTrainAtOnceWhenThereAreMany) {
  std::vector<RunCost> runs(1'000, RunCost{"a", 1'000, 0, 5, 100});
  runs[7].resume_bytes = 300;
  const auto cost = [&runs](uint32_t lanes) {
    return EstimateCost(runs, Measured(1'000), Cores(lanes))->bytes;
  };
  EXPECT_EQ(cost(3), 1'000 * 5 + 2 * 3 * 300u) << "and not one a run";
  EXPECT_EQ(cost(0), 1'000 * 5 + 2 * 300u) << "some lane is to come";
  runs.resize(4);
  EXPECT_EQ(cost(3), 4 * 5 + 4 * 100u) << "no more than there are runs";
}

TEST(EstimateCostTest, GuessesFromArithmeticAndSaysSo) {
  const auto small = EstimateCost({{"a", 1'000, 1e6, 0}}, Unknown, Cores(1));
  const auto large = EstimateCost({{"a", 1'000, 1e11, 0}}, Unknown, Cores(1));
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_FALSE(small->measured);
  EXPECT_GT(small->device_time, absl::ZeroDuration());
  EXPECT_GT(large->device_time, 10 * small->device_time);
}

TEST(EstimateCostTest, GuessesEvaluationsToo) {
  RunCost run{"a", 1'000, 1e8, 0};
  const auto time = [&run] { return EstimateCost({run}, Unknown, Cores(1))->device_time; };
  const absl::Duration alone = time();
  run.every = 300;
  run.evaluation = {20, 1e9};
  const absl::Duration evaluated = time() - alone;
  EXPECT_GT(evaluated, absl::ZeroDuration());
  run.every = 100;
  EXPECT_EQ(time() - alone, 11 * (evaluated / 5)) << "also at the first step and the last";
  run.evaluation = {20, 2e9};
  EXPECT_GT(time() - alone, 11 * (evaluated / 5));
  run.evaluation = {2, 1e8 / 3 * 2};
  run.every = 1;
  EXPECT_LT(time(), 3 * alone) << "a batch without a backward pass costs less than a step";
}

TEST(EstimateCostTest, HasEvaluationsInMeasuredTimes) {
  RunCost run{"a", 1'000, 0, 0};
  run.evaluation = {20, 1e12};
  EXPECT_EQ(EstimateCost({run}, Measured(1'000), Cores(1))->device_time, absl::Seconds(1));
}

TEST(EstimateCostTest, GuessesByTheTrainersSpeedUnlessItIsMeasured) {
  RunCost run{"a", 1'000, 1e6, 0};
  run.guessed_speed = {100, 1e3};
  run.every = 500;
  run.evaluation = {4, 3e6};
  // 1,000 steps of 1.2 ms and 3 evaluations of 3.4 ms.
  EXPECT_EQ(EstimateCost({run}, Unknown, Cores(1))->device_time, absl::Microseconds(1'210'200));
  EXPECT_FALSE(EstimateCost({run}, Unknown, Cores(1))->measured);
  EXPECT_EQ(EstimateCost({run}, Measured(2'000), Cores(1))->device_time, absl::Seconds(2));
}

TEST(EstimateCostTest, AsksOnceForEachShape) {
  int asked = 0;
  RunCost guessed{"b", 1, 0, 0};
  guessed.guessed_speed = {100, 1e3};
  const auto cost = EstimateCost(
      {{"a", 1, 0, 0}, guessed, {"a", 1, 0, 0}},
      [&asked](absl::string_view shape) {
        ++asked;
        return shape == "a" ? std::optional<double>(1e6) : std::nullopt;
      },
      Cores(1));
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(cost->measured);
  EXPECT_GT(cost->device_time, absl::Seconds(2));
  EXPECT_EQ(cost->measured_time, absl::Seconds(2)) << "of a alone";
}

TEST(EstimateCostTest, PassesErrorsOn) {
  const auto cost = EstimateCost(
      {{"a", 1, 0, 0}},
      [](absl::string_view) -> absl::StatusOr<std::optional<double>> {
        return absl::UnavailableError("no store");
      },
      Cores(1));
  EXPECT_EQ(cost.status(), absl::UnavailableError("no store"));
}

TEST(EstimateCostTest, CountsTheLastStatesThatAreKept) {
  const auto bytes = [](bool grows, uint64_t kept) {
    const std::vector<RunCost> runs(10, {"a", 10, 0, 100, 1'000, grows});
    return EstimateCost(runs, Measured(1'000), Cores(1, kept))->bytes;
  };
  EXPECT_EQ(bytes(false, 50'000), 10 * 100 + 2 * 1'000u);
  EXPECT_EQ(bytes(true, 50'000), 10 * 100 + 2 * 1'000 + 10 * 1'000u);
  EXPECT_EQ(bytes(true, 4'500), 10 * 100 + 2 * 1'000 + 4'500u);
  EXPECT_EQ(bytes(true, 0), 10 * 100 + 2 * 1'000u);
}

spec::EntryCost EntryOf(double mean, double largest) {
  spec::EntryCost entry;
  entry.times["hessian/torch"] = {mean, largest};
  return entry;
}
// Pretends that so many were computed, each guessed at 1 second, in so many seconds each.
FindTimes Made(uint64_t analyses, double seconds) {
  return [=](absl::string_view) {
    const auto count = static_cast<double>(analyses);
    return storage::AnalysisTimes{analyses, count * seconds * 1e6, count * 1e6, 1e6};
  };
}

TEST(AnalysesCostTest, IsGuessedUntilAFewWereMade) {
  Cost cost;
  ASSERT_TRUE(AddAnalysesCost(4, EntryOf(1e6, 1e6), Made(2, 5), &cost).ok());
  EXPECT_EQ(cost.device_time, absl::Seconds(4));
  EXPECT_EQ(cost.wall_time, absl::Seconds(4)) << "one worker makes them";
  EXPECT_EQ(cost.measured_time, absl::ZeroDuration());
  EXPECT_FALSE(cost.measured);
}

TEST(AnalysesCostTest, ScalesTheGuessByWhatItsGroupTook) {
  Cost cost;
  ASSERT_TRUE(AddAnalysesCost(4, EntryOf(2e6, 9e6), Made(3, .1), &cost).ok());
  EXPECT_EQ(cost.device_time, absl::Seconds(.8)) << "twice as large ones as were made";
  EXPECT_EQ(cost.measured_time, cost.device_time);
  EXPECT_TRUE(cost.measured);
}

TEST(AnalysesCostTest, IsGuessedWhereThoseThatWereMadeAreMuchSmaller) {
  Cost cost;
  ASSERT_TRUE(AddAnalysesCost(1, EntryOf(2e6, 11e6), Made(100, .1), &cost).ok());
  EXPECT_EQ(cost.device_time, absl::Seconds(.2));
  EXPECT_EQ(cost.measured_time, absl::ZeroDuration());
  EXPECT_FALSE(cost.measured);
}

TEST(AnalysesCostTest, PassesErrorsOn) {
  Cost cost;
  const auto broken = [](absl::string_view) -> absl::StatusOr<storage::AnalysisTimes> {
    return absl::UnavailableError("no store");
  };
  EXPECT_EQ(AddAnalysesCost(1, EntryOf(1, 1), broken, &cost), absl::UnavailableError("no store"));
}

}  // namespace
}  // namespace ablate::submit
