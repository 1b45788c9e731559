// Trains on a device that refuses what a GPU refuses, and draws samples there.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <cmath>
#include <map>

#include "server/engine/samples.h"
#include "server/engine/torch/model/head_loss.h"
#include "server/engine/torch/train/torch_backend.h"
#include "tests/engine/device_runs.h"
#include "tests/engine/on_device/strict_device.h"
#include "tests/parity/grid.h"

namespace ablate::engine {
namespace {

// Returns the last value of each metric.
std::map<std::string, double> LastValues(const RunConfig& run,
                                         const std::shared_ptr<Accelerator>& accelerator) {
  PrepareLaneThread();
  auto trainer = MakeTrainer(run, accelerator);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  std::map<std::string, double> last;
  if (!trainer.ok()) return last;
  const auto progress = (*trainer)->Advance(run.training.steps, [] { return false; });
  EXPECT_TRUE(progress.ok()) << progress.status();
  if (!progress.ok()) return last;
  for (const Point& point : progress->points) last[point.key] = point.value;
  return last;
}

TEST(TrainingOnDeviceTest, EqualsThatOfTheCores) {
  for (auto [name, run] : DeviceRuns()) {
    SCOPED_TRACE(name);
    run.precision = Precision::kFloat64;
    const std::map<std::string, double> on_cores = LastValues(run, nullptr);
    run.device = Device::kCuda;
    const std::map<std::string, double> on_device = LastValues(run, StrictAccelerator());
    ASSERT_EQ(on_cores.size(), on_device.size());
    for (const auto& [key, value] : on_cores) {
      ASSERT_EQ(on_device.count(key), 1u) << key;
      EXPECT_NEAR(value, on_device.at(key), 1e-6 * std::max(1.0, std::abs(value))) << key;
    }
  }
}

TEST(TrainingOnDeviceTest, TrainsInBfloat16) {
  for (auto [name, run] : DeviceRuns()) {
    SCOPED_TRACE(name);
    run.precision = Precision::kBfloat16;
    const std::map<std::string, double> on_cores = LastValues(run, nullptr);
    run.device = Device::kCuda;
    for (const auto& [key, value] : LastValues(run, StrictAccelerator())) {
      EXPECT_NEAR(value, on_cores.at(key), 0.05 * std::max(1.0, std::abs(value))) << key;
    }
  }
}

// Returns the losses of a case's updates.
std::vector<double> LossesOf(const GridCase& drawn, const RunConfig& run, Accelerator* device) {
  PrepareLaneThread();
  auto backend = device == nullptr
                     ? MakeTorchBackend(run)
                     : MakeDeviceBackend(run, "tested", device->streams(), device->ended());
  EXPECT_TRUE(backend.ok()) << backend.status();
  std::vector<double> losses;
  for (uint32_t step = 0; backend.ok() && step < drawn.batches.size(); ++step) {
    const auto made =
        (*backend)->Step({drawn.batches[step], step, drawn.training.optimizer.learning_rate});
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) break;
    losses.push_back(made->loss);
  }
  return losses;
}

TEST(TrainingOnDeviceTest, TrainsEverySettingInBfloat16) {
  constexpr uint64_t kCases = 24;
  const auto accelerator = StrictAccelerator();
  for (uint64_t number = 0; number < kCases; ++number) {
    const GridCase drawn = DrawCase(number);
    SCOPED_TRACE(drawn.name);
    RunConfig run = ConfigOf(drawn);
    if (number % 3 == 0) run.model.dropout = 0.1;
    const std::vector<double> expected = LossesOf(drawn, run, nullptr);
    run.precision = Precision::kBfloat16;
    const std::vector<double> on_cores = LossesOf(drawn, run, nullptr);
    run.device = Device::kCuda;
    const std::vector<double> on_device = LossesOf(drawn, run, accelerator.get());
    ASSERT_EQ(on_cores.size(), expected.size());
    ASSERT_EQ(on_device.size(), expected.size());
    for (size_t step = 0; step < expected.size(); ++step) {
      const double tolerance = 0.05 * std::max(1.0, std::abs(expected[step]));
      EXPECT_NEAR(on_cores[step], expected[step], tolerance) << "on the cores, step " << step;
      EXPECT_NEAR(on_device[step], expected[step], tolerance) << "step " << step;
    }
  }
}

// As far as rounding factors to bfloat16 allows: p − 1 of a target that the model is sure of must
// not be the difference of rounded numbers.
TEST(HeadLossOnDeviceTest, KeepsSmallGradientsInBfloat16) {
  const auto accelerator = StrictAccelerator();
  const std::unique_ptr<DeviceStream> stream = accelerator->streams().NewStream();
  constexpr int64_t kTargets = 7, kVocabulary = 1030, kWidth = 1030;
  at::manual_seed(1);
  const auto sure = at::eye(kWidth).mul(16).add(at::randn({kVocabulary, kWidth}), 0.01);
  const auto gradient = [&](at::Device device, std::optional<at::ScalarType> factors) {
    LinearParameters head;
    head.weight = sure.to(device).requires_grad_();
    const at::Tensor x = at::eye(kWidth).narrow(0, 0, kTargets).to(device);
    BatchTensors batch;
    batch.targets = at::arange(kTargets).to(device);
    const at::Tensor loss = MeanHeadLoss(x, {head}, batch, {}, factors);
    return torch::autograd::grad({loss}, {head.weight})[0].to(at::kCPU);
  };
  const at::Tensor exact = gradient(at::kCPU, {});
  at::Tensor rounded;
  stream->Run([&] { rounded = gradient(stream->device(), at::kBFloat16); });
  const at::Tensor of_targets = exact.diagonal().narrow(0, 0, kTargets);
  EXPECT_LT(of_targets.abs().max().item<double>(), 1e-4);
  const at::Tensor error = rounded.diagonal().narrow(0, 0, kTargets) - of_targets;
  EXPECT_LT((error / of_targets).abs().max().item<double>(), 0.1);
}

TEST(SamplesOnDeviceTest, EqualThoseOfTheCores) {
  std::vector<RunConfig> runs(2, SmallDocumentsRun(3));
  runs[1].model.attention.causal = false;  // reads the whole prefix for every token
  for (const RunConfig& run : runs) {
    const std::unique_ptr<Trainer> trainer = MustMakeTrainer(run);
    Advance(*trainer, 5);
    const std::string checkpoint = *trainer->ExportCheckpoint();
    const auto texts = [&](const std::shared_ptr<Accelerator>& accelerator) {
      SampleOptions options;
      options.count = 12;
      std::vector<std::string> drawn;
      const std::atomic<bool> stop{false};
      const auto counts = GenerateSamples(
          run, checkpoint, options, stop,
          [&](const std::vector<Sample>& some) {
            for (const Sample& sample : some) drawn.push_back(sample.text);
          },
          accelerator);
      EXPECT_TRUE(counts.ok()) << counts.status();
      return drawn;
    };
    const std::vector<std::string> on_cores = texts(nullptr);
    EXPECT_EQ(on_cores.size(), 12u);
    EXPECT_EQ(texts(StrictAccelerator()), on_cores);
  }
}

}  // namespace
}  // namespace ablate::engine
