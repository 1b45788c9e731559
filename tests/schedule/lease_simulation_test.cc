// Tests random schedules of crashes, resends, restores and expiries over the real scheduler, lease
// book and store, with a trainer that never gives the same numbers twice.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/schedule/simulation/simulation.h"

namespace ablate::simulation {
namespace {

constexpr size_t kTraceLines = 250;

// Returns the end of the trace of a seed, for understanding a failure.
std::string TraceOf(uint64_t seed, Mutation mutation) {
  Simulation simulation(seed, mutation);
  simulation.KeepTrace();
  simulation.Run();
  std::vector<std::string> lines = simulation.trace();
  if (lines.size() > kTraceLines) lines.erase(lines.begin(), lines.end() - kTraceLines);
  return absl::StrJoin(lines, "\n");
}

// The first seed of a shard.
class LeaseSimulationTest : public ::testing::TestWithParam<uint64_t> {};

constexpr uint64_t kShard = 500;
constexpr uint64_t kSchedules = 10'000;

TEST_P(LeaseSimulationTest, KeepsOneConsistentHistoryWhateverHappens) {
  for (uint64_t seed = GetParam(); seed < GetParam() + kShard; ++seed) {
    const std::string problem = Simulation(seed, Mutation::kNone).Run();
    ASSERT_EQ(problem, "") << "seed " << seed << "\n" << TraceOf(seed, Mutation::kNone);
  }
}

INSTANTIATE_TEST_SUITE_P(Short, LeaseSimulationTest, ::testing::Values<uint64_t>(0));
INSTANTIATE_TEST_SUITE_P(Long, LeaseSimulationTest,
                         ::testing::Range<uint64_t>(kShard, kSchedules, kShard));

size_t ProblemsFound(Mutation mutation, uint64_t schedules) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < schedules; ++seed) {
    if (!Simulation(seed, mutation).Run().empty()) ++found;
  }
  return found;
}

TEST(LeaseSimulationMutationTest, NoticesAcknowledgementsBeforeTheCommit) {
  EXPECT_GE(ProblemsFound(Mutation::kAcknowledgesBeforeTheCommit, 200), 5u);
}

// 41 of them. In the others the commit comes before the answer is read.
TEST(LeaseSimulationMutationTest, NoticesGrantsBeforeTheCommit) {
  EXPECT_GE(ProblemsFound(Mutation::kGrantsBeforeTheCommit, 50), 35u);
}

TEST(LeaseSimulationMutationTest, NoticesEventsTakenByRunAlone) {
  EXPECT_GE(ProblemsFound(Mutation::kTakesEventsByRunAlone, 200), 20u);
}

}  // namespace
}  // namespace ablate::simulation
