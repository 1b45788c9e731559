// Compares one float32 update of each backend with PyTorch in float64, from PyTorch's own state,
// over the grid of settings.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/trainer.h"
#include "tests/parity/update_check.h"

namespace ablate::engine {
namespace {

TEST(UpdateParityTest, IsWithinRoundingOfPyTorchByEitherBackend) {
  std::vector<GridCase> cases;
  for (const GridCase& settings : MakeGrid()) {
    if (settings.precision == Precision::kFloat32) cases.push_back(settings);
  }
  PrepareLaneThread();
  const UpdateCheck check = CheckUpdates(cases);
  if (!check.missing.empty()) GTEST_SKIP() << check.missing;
  EXPECT_EQ(check.failures, "");
  for (const auto& [backend, tally] : check.tallies) {
    SCOPED_TRACE(backend);
    RecordProperty(backend + "_error", std::to_string(tally.MeanError()));
    RecordProperty(backend + "_beyond_four_units", std::to_string(tally.Beyond(4)));
    RecordProperty(backend + "_worst", std::to_string(tally.Worst()));
    EXPECT_GE(tally.cases, 140);
    EXPECT_LE(tally.MeanError(), 1.0);
    EXPECT_LE(tally.Beyond(4), 0.01);
  }
}

}  // namespace
}  // namespace ablate::engine
