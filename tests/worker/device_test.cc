// Tests the words and numbers by which a worker describes its device.
#include "server/worker/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ablate::worker {
namespace {

TEST(DeviceTest, DescribesAnAccelerator) {
  v1::Hello hello;
  DescribeAccelerator({"GPU-1", "NVIDIA H100 80GB HBM3", "9.0", 85'520'809'984}, 4,
                      /*measured=*/false, &hello);
  EXPECT_EQ(hello.device(), "NVIDIA H100 80GB HBM3, 80 GiB, 4 lanes");
  EXPECT_EQ(hello.device_kind(), "cuda");
  EXPECT_EQ(hello.lanes(), 4u);
  EXPECT_EQ(hello.memory_bytes(), 85'520'809'984u);
  DescribeAccelerator({"GPU-1", "NVIDIA L4", "8.9", 24'000'000'000}, 16, /*measured=*/true, &hello);
  EXPECT_EQ(hello.device(), "NVIDIA L4, 22 GiB, up to 16 lanes");
}

TEST(DeviceTest, AsksForTheUseOfItsOwnDevice) {
  std::vector<std::string> asked;
  NvmlFunctions functions;
  functions.init = [] { return 0; };
  functions.by_uuid = [&asked](const char* uuid, NvmlDevice*) {
    asked.emplace_back(uuid);
    return asked.size() == 1 ? 0 : 6;
  };
  functions.memory = [](NvmlDevice, NvmlMemory* memory) {
    *memory = {80, 50, 30};
    return 0;
  };
  functions.utilization = [](NvmlDevice, NvmlUtilization* utilization) {
    *utilization = {62, 1};
    return 0;
  };
  functions.processes = [](NvmlDevice, uint32_t* count, NvmlProcess*) {
    *count = 3;
    return 0;
  };
  functions.power = [](NvmlDevice, uint32_t* milliwatts) {
    *milliwatts = 349'600;
    return 0;
  };
  functions.ecc_errors = [](NvmlDevice, int, int, uint64_t* count) {
    *count = 2;
    return 0;
  };
  functions.error_text = [](int) { return "Not Found"; };
  const auto ask = AskForUse(Nvml::Make(functions), "GPU-1");
  const std::optional<v1::DeviceUse> use = ask();
  EXPECT_EQ(asked, std::vector<std::string>{"GPU-1"});
  ASSERT_TRUE(use.has_value());
  EXPECT_EQ(use->utilization(), 62u);
  EXPECT_EQ(use->used_bytes(), 30u);
  EXPECT_EQ(use->others(), 2u);
  EXPECT_EQ(use->watts(), 350u);
  EXPECT_EQ(use->ecc_errors(), 2u);
  EXPECT_FALSE(ask().has_value()) << "the driver doesn't find it any more";
  EXPECT_EQ(AskForUse(absl::FailedPreconditionError("no driver"), "GPU-1"), nullptr);
}

TEST(DeviceTest, DescribesTheCores) {
  v1::Hello hello;
  DescribeCores(1, &hello);
  EXPECT_THAT(hello.device(), testing::EndsWith(", 1 lane"));
  EXPECT_EQ(hello.device_kind(), "cpu");
  EXPECT_EQ(hello.lanes(), 1u);
  EXPECT_GT(hello.memory_bytes(), 0u);
}

}  // namespace
}  // namespace ablate::worker
