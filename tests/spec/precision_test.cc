// Tests precisions that need a GPU: what they make of auto, and where they are refused.
// bad_input/run.txt has the refusals of a single run.
#include "gmock/gmock.h"
#include "server/engine/names.h"
#include "server/spec/resolve.h"
#include "tests/spec/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Returns an experiment of runs in float32 and in `precision`, in this order.
v1::ExperimentSpec InPrecisions(const std::string& precision) {
  v1::ExperimentSpec spec = SmallSpec();
  AddValues("training.precision", {"\"float32\"", "\"" + precision + "\""}, &spec);
  return spec;
}

TEST(PrecisionTest, MakesAutoTorchOnAGpuForAllRuns) {
  for (const std::string precision : {"tf32", "bfloat16"}) {
    const Resolution resolution = Resolve(InPrecisions(precision), {}, WithGpu());
    EXPECT_THAT(Messages(resolution), IsEmpty());
    EXPECT_THAT(Devices(resolution), ElementsAre("cuda", "cuda"));
    ASSERT_THAT(resolution.cells, SizeIs(2));
    for (const ResolvedCell& cell : resolution.cells) {
      EXPECT_EQ(cell.trainer, "torch");
      EXPECT_EQ(cell.why_not_native,
                "the native trainer computes in float32 (precision=" + precision + ")");
    }
    EXPECT_EQ(engine::NameOf(resolution.configs[1].precision), precision);
    EXPECT_NE(resolution.cells[0].fingerprint, resolution.cells[1].fingerprint);
    EXPECT_NE(resolution.cells[0].trajectory, resolution.cells[1].trajectory);
    EXPECT_NE(resolution.cells[0].shape, resolution.cells[1].shape) << "a step's time differs";
    EXPECT_THAT(resolution.cells[1].others, IsEmpty()) << "no other trainer or device has it";
    EXPECT_THAT(resolution.notes,
                ::testing::Contains("training.device auto is cuda: torch trains on a GPU"));
  }
}

TEST(PrecisionTest, IsRefusedByNativeIfThatIsAskedFor) {
  EXPECT_THAT(Messages(Resolve(InPrecisions("tf32"), {{"training.trainer", Json("\"native\"")}},
                               WithGpu())),
              ElementsAre("overrides[\"training.trainer\"]: native doesn't support all of these "
                          "runs: the native trainer computes in float32 (precision=tf32); expected "
                          "auto or torch, or exclude those cells, or have native in base and "
                          "training.trainer: torch in the setting of those cells"));
}

// Native trains one of the runs on the cores, so that auto is the cores for all.
TEST(PrecisionTest, IsRefusedIfAutoIsTheCores) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings(
      "by",
      {{"native", {{"training.trainer", "\"native\""}}},
       {"mixed", {{"training.trainer", "\"torch\""}, {"training.precision", "\"bfloat16\""}}}},
      &spec);
  EXPECT_THAT(
      Messages(Resolve(spec, {}, WithGpu())),
      ElementsAre("axes[0].settings[1].set[\"training.precision\"]: precision bfloat16 needs a "
                  "GPU, and device auto is cpu, because native trains some of the runs; expected "
                  "float32, or training.device: cuda for this run"));
  auto& mixed = *spec.mutable_axes(0)->mutable_settings(1)->mutable_set();
  mixed["training.device"] = Json("\"cuda\"");
  const Resolution asked = Resolve(spec, {}, WithGpu());
  EXPECT_THAT(Messages(asked), IsEmpty());
  EXPECT_THAT(Devices(asked), ElementsAre("cpu", "cuda"));
}

}  // namespace
}  // namespace ablate::spec
