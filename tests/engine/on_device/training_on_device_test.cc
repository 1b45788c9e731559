// Trains on a device that refuses what a GPU refuses, and draws samples there.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>

#include "server/engine/samples.h"
#include "tests/engine/device_runs.h"
#include "tests/engine/on_device/strict_device.h"

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
  RunConfig run = SmallTextRun(1);
  run.precision = Precision::kBfloat16;
  run.device = Device::kCuda;
  for (const auto& [key, value] : LastValues(run, StrictAccelerator())) {
    EXPECT_TRUE(std::isfinite(value)) << key;
  }
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
