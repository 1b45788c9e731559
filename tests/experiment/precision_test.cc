// Tests precisions and threads: what they make of auto, and where they are refused.
// bad_input/run.txt has the refusals of a single run.
#include "gmock/gmock.h"
#include "server/engine/names.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::Contains;
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
    // No other trainer has it, and of bfloat16 the cores.
    EXPECT_THAT(resolution.cells[1].others, SizeIs(precision == "tf32" ? 0 : 1));
    EXPECT_THAT(resolution.notes, Contains("training.device auto is cuda: torch trains on a GPU"));
  }
}

TEST(PrecisionTest, Bfloat16IsTrainedByTorchOnTheCoresWithoutAGpu) {
  const Resolution resolution = Resolve(InPrecisions("bfloat16"), {}, TestSurroundings());
  EXPECT_THAT(Messages(resolution), IsEmpty());
  EXPECT_THAT(Devices(resolution), ElementsAre("cpu", "cpu"));
  for (const ResolvedCell& cell : resolution.cells) EXPECT_EQ(cell.trainer, "torch");
  EXPECT_THAT(resolution.cells[1].others, IsEmpty());
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
  AddSettings("by",
              {{"native", {{"training.trainer", "\"native\""}}},
               {"mixed", {{"training.trainer", "\"torch\""}, {"training.precision", "\"tf32\""}}}},
              &spec);
  EXPECT_THAT(
      Messages(Resolve(spec, {}, WithGpu())),
      ElementsAre("axes[0].settings[1].set[\"training.precision\"]: precision tf32 needs a GPU, "
                  "and device auto is cpu, because the cores train some of the runs; expected "
                  "float32, or training.device: cuda for this run"));
  auto& mixed = *spec.mutable_axes(0)->mutable_settings(1)->mutable_set();
  mixed["training.device"] = Json("\"cuda\"");
  const Resolution asked = Resolve(spec, {}, WithGpu());
  EXPECT_THAT(Messages(asked), IsEmpty());
  EXPECT_THAT(Devices(asked), ElementsAre("cpu", "cuda"));
}

// Returns a run on `threads` threads where the largest worker has four lanes.
Resolution OnThreads(uint32_t threads, Surroundings surroundings = TestSurroundings()) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_threads(threads);
  surroundings.most_lanes = 4;
  return Resolve(spec, {}, surroundings);
}

TEST(ThreadsTest, MakeTheTrainerTorch) {
  const Resolution resolution = OnThreads(4);
  EXPECT_THAT(Messages(resolution), IsEmpty());
  ASSERT_THAT(resolution.cells, SizeIs(1));
  EXPECT_EQ(resolution.cells[0].trainer, "torch");
  EXPECT_EQ(resolution.cells[0].why_not_native, "the native trainer computes a run on one thread");
  EXPECT_EQ(resolution.configs[0].training.threads, 4u);
  EXPECT_THAT(resolution.cells[0].others, IsEmpty());
}

TEST(ThreadsTest, ArePartOfARunAndOfItsCost) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  const Resolution one = Resolve(spec, {}, TestSurroundings());
  spec.mutable_base()->mutable_training()->set_threads(1);
  EXPECT_EQ(Resolve(spec, {}, TestSurroundings()).cells[0].fingerprint, one.cells[0].fingerprint);
  spec.mutable_base()->mutable_training()->set_threads(2);
  const Resolution two = Resolve(spec, {}, TestSurroundings());
  EXPECT_NE(two.cells[0].fingerprint, one.cells[0].fingerprint);
  EXPECT_NE(two.cells[0].shape, one.cells[0].shape);
}

TEST(ThreadsTest, AreAtMostTheLanesOfAWorker) {
  EXPECT_THAT(Messages(OnThreads(5)),
              ElementsAre("base.training.threads: threads 5 take as many lanes, and no worker has "
                          "more than 4; expected at most 4"));
}

TEST(ThreadsTest, MakeTheDeviceTheCores) {
  const Resolution resolution = OnThreads(2, WithGpu());
  EXPECT_THAT(Messages(resolution), IsEmpty());
  EXPECT_THAT(Devices(resolution), ElementsAre("cpu"));
  EXPECT_THAT(resolution.notes,
              Contains("training.device auto is cpu, because training.threads is above 1; without "
                       "threads a GPU trains the runs"));
}

TEST(ThreadsTest, AreRefusedOnAGpuAndByNative) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_threads(2);
  EXPECT_THAT(
      Messages(Resolve(spec, {{"training.device", Json("\"cuda\"")}}, WithGpu())),
      ElementsAre("overrides[\"training.device\"]: threads 2 are of the cores, and device is cuda; "
                  "expected threads 1, or device cpu"));
  EXPECT_THAT(
      Messages(Resolve(spec, {{"training.trainer", Json("\"native\"")}}, TestSurroundings())),
      ElementsAre("overrides[\"training.trainer\"]: native doesn't support this run: the native "
                  "trainer computes a run on one thread; expected auto or torch"));
}

}  // namespace
}  // namespace ablate::spec
