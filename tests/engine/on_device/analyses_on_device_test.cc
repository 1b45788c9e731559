// Computes every kind of analysis on a device that refuses what a GPU refuses.
#include <gtest/gtest.h>

#include "server/engine/analyze/cka.h"
#include "server/engine/torch/device/on_stream.h"
#include "tests/engine/on_device/compared.h"
#include "tests/engine/on_device/strict_device.h"

namespace ablate::engine {
namespace {

// Kinds with other code than the variants of EveryKind.
std::vector<AnalysisOptions> Kinds() {
  std::vector<AnalysisOptions> kinds = EveryKind();
  kinds.emplace_back(RobustnessOptions{{0.2}, {}, {}, {}, LevelUnit::kAbsolute, 2});
  kinds.emplace_back(RemoveOptions{RemovedPart::kAttention, Replacement::kUniform});
  kinds.emplace_back(AttentionOptions{});
  return kinds;
}

class AnalysesOnDeviceTest : public testing::TestWithParam<size_t> {};

TEST_P(AnalysesOnDeviceTest, EqualThoseOfTheCores) {
  EXPECT_EQ(WrongOnDevice(Kinds()[GetParam()], StrictAccelerator()), "");
}

INSTANTIATE_TEST_SUITE_P(EveryKind, AnalysesOnDeviceTest, testing::Range(size_t{0}, Kinds().size()),
                         [](const auto& of) {
                           return absl::StrCat(KindOf(Kinds()[of.param]).name, of.param);
                         });

TEST(StateOnDeviceTest, IsForTheSameKindOfDevice) {
  const AnalysisRequest request = {SpectrumOptions{}, {ModelM()}, {60, ""}};
  const std::atomic<bool> stop{false};
  for (const bool on_device : {false, true}) {
    const std::shared_ptr<Accelerator> here = on_device ? StrictAccelerator() : nullptr;
    const auto analysis = *MakeAnalysis(request, here);
    ASSERT_EQ(analysis->Advance(stop), absl::OkStatus());
    const std::string state = *analysis->Save();
    EXPECT_EQ((*MakeAnalysis(request, here))->Restore(state), absl::OkStatus());
    const auto other = *MakeAnalysis(request, on_device ? nullptr : StrictAccelerator());
    const absl::Status restored = other->Restore(state);
    EXPECT_TRUE(absl::IsInvalidArgument(restored)) << restored;
    EXPECT_EQ(other->made(), 0);
  }
}

TEST(CkaOnDeviceTest, GathersMinibatchesAsOnTheCores) {
  const auto computed = [](const std::shared_ptr<Accelerator>& accelerator) {
    const OnStream on(accelerator);
    return on([&] {
      const CkaOptions options = {{}, CkaEstimator::kDebiased, 5};
      const AnalysisContext analysis =
          *ReadAnalysisContext({options, {DrawnSubject(2)}, {60, ""}}, on.device());
      const MadeComputation made = MakeCka(options, analysis, /*most_bytes=*/1);
      for (int64_t piece = 0; piece < (*made)->pieces(); ++piece) (*made)->Add(piece);
      return (*made)->Finish();
    });
  };
  EXPECT_EQ(DifferenceOf(computed(nullptr), computed(StrictAccelerator())), "");
}

}  // namespace
}  // namespace ablate::engine
