// Tests the source experiments' own numbers: parameter counts and first losses.
#include <gtest/gtest.h>

#include <vector>

#include "server/engine/core/layout.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

struct NamesVariant {
  NormPlacement placement;
  bool final_norm;
  int64_t parameters;
  std::vector<double> losses;
};

class NamesTest : public testing::TestWithParam<NamesVariant> {};

TEST_P(NamesTest, BeginsWithTheSourcesLosses) {
  RunConfig run = NamesRun(42, GetParam().placement, GetParam().final_norm);
  std::get<DocumentsTask>(run.task).held_out = 0;
  EXPECT_EQ(MakeLayout(run.model).size, GetParam().parameters);

  PrepareLaneThread();
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer(run);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const absl::StatusOr<RunProgress> progress = (*trainer)->Advance(3, [] { return false; });
  ASSERT_TRUE(progress.ok()) << progress.status();
  std::vector<double> losses;
  for (const Point& point : progress->points) {
    if (point.key == "train/loss") losses.push_back(point.value);
  }
  ASSERT_EQ(losses.size(), 3u);
  for (int step = 0; step < 3; ++step) EXPECT_NEAR(losses[step], GetParam().losses[step], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Placements, NamesTest,
    testing::Values(
        NamesVariant{NormPlacement::kPre, true, 25968, {3.4530597, 3.5255606, 3.2193286}},
        NamesVariant{NormPlacement::kPost, false, 25952, {3.4319694, 3.641469, 3.3157382}},
        NamesVariant{NormPlacement::kNone, false, 25696, {3.5788357, 4.8510571, 3.3996403}}));

TEST(RecallTest, HasTheSourcesParameterCounts) {
  EXPECT_EQ(MakeLayout(RecallRun(0, NormPlacement::kPost).model).size, 301586);
  EXPECT_EQ(MakeLayout(RecallRun(0, NormPlacement::kNone).model).size, 301074);
}

}  // namespace
}  // namespace ablate::engine
