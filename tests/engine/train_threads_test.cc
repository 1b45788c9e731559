// Tests runs on several threads and in bfloat16 on a CPU.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

// Large enough that LibTorch shares operations among threads.
RunConfig WideRun() {
  RunConfig run = SmallTextRun(3);
  run.model.width = 128;
  run.model.hidden = 512;
  run.model.heads = 4;
  run.training.batch = 16;
  run.training.steps = 6;
  run.evaluation.every = 3;
  return run;
}

RunConfig OnThreads(uint32_t threads) {
  RunConfig run = WideRun();
  run.training.threads = threads;
  return run;
}

RunConfig InBfloat16() {
  RunConfig run = WideRun();
  run.precision = Precision::kBfloat16;
  return run;
}

std::vector<double> Losses(const RunConfig& run) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(run);
  return ValuesOf(Advance(*trainer, run.training.steps).points, "train/loss");
}

void ExpectClose(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

// Returns the points of a run that another trainer continues after `at` steps.
std::vector<std::string> Resumed(const RunConfig& run, uint32_t at) {
  const std::unique_ptr<Trainer> first = MustMakeTrainer(run), second = MustMakeTrainer(run);
  std::vector<Point> points = Advance(*first, at).points;
  const absl::StatusOr<std::string> state = first->ExportState();
  EXPECT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(second->ImportState(*state).ok());
  for (Point& point : Advance(*second, run.training.steps).points) points.push_back(point);
  return Exactly(points);
}

std::vector<std::string> Whole(const RunConfig& run) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(run);
  return Exactly(Advance(*trainer, run.training.steps).points);
}

TEST(ThreadsTest, GiveTheLossesOfOneThread) {
  ExpectClose(Losses(OnThreads(2)), Losses(OnThreads(1)), 1e-4);
}

TEST(ThreadsTest, AreOnesAgainInTheLanesNextRun) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(OnThreads(3));
  Advance(*trainer, 2);
  EXPECT_EQ(at::get_num_threads(), 3);
  const absl::StatusOr<std::unique_ptr<Trainer>> next = MakeTrainer(OnThreads(1));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(at::get_num_threads(), 1);
  Advance(*trainer, 1);
  EXPECT_EQ(at::get_num_threads(), 3) << "each run on its own number";
}

TEST(ThreadsTest, ResumeWithTheSameBits) {
  EXPECT_EQ(Resumed(OnThreads(2), 2), Whole(OnThreads(2)));
}

TEST(ThreadsTest, AreOfTheTorchTrainer) {
  RunConfig run = OnThreads(2);
  run.training.trainer = TrainerKind::kNative;
  EXPECT_EQ(MakeTrainer(run).status(),
            absl::InvalidArgumentError("training.trainer is native, but the native trainer "
                                       "computes a run on one thread"));
}

TEST(Bfloat16OnCpuTest, TrainsNearFloat32) {
  const std::vector<double> exact = Losses(WideRun()), rounded = Losses(InBfloat16());
  ExpectClose(rounded, exact, 0.02);
  EXPECT_NE(rounded, exact);
}

TEST(Bfloat16OnCpuTest, ResumesWithTheSameBits) {
  EXPECT_EQ(Resumed(InBfloat16(), 2), Whole(InBfloat16()));
}

TEST(Bfloat16OnCpuTest, KeepsParametersInFloat32) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(InBfloat16());
  Advance(*trainer, 2);
  const absl::StatusOr<std::string> checkpoint = trainer->ExportCheckpoint();
  ASSERT_TRUE(checkpoint.ok());
  const absl::StatusOr<SafetensorsFile> file = ParseSafetensors(*checkpoint);
  ASSERT_TRUE(file.ok());
  for (const TensorView& tensor : file->tensors) {
    EXPECT_EQ(tensor.type, TensorType::kF32) << tensor.name;
  }
}

TEST(PrecisionTest, Tf32IsRefusedOnACpu) {
  RunConfig run = WideRun();
  run.precision = Precision::kTf32;
  EXPECT_EQ(MakeTrainer(run).status(),
            absl::InvalidArgumentError("precision is tf32, but a CPU has no such products"));
}

}  // namespace
}  // namespace ablate::engine
