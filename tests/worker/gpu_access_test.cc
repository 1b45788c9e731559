// Tests what a program gets to use a GPU, with a fake driver in the real sandbox; skipped where
// there is no sandbox.
#include "server/worker/gpu_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "server/program/sandbox.h"
#include "tests/test_folder.h"

namespace ablate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kPython[] = "/usr/bin/python3";

TEST(GpuAccessTest, NamesTheFilesOfADevice) {
  const TestFolder dev;
  for (const char* name : {"nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm"}) dev.Write(name, "");
  const auto access = AccessTo({1, "GPU-11aa", "NVIDIA L4", 24, 3}, dev.path());
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->uuid, "GPU-11aa");
  EXPECT_THAT(access->devices, ElementsAre(dev / "nvidia3", dev / "nvidiactl", dev / "nvidia-uvm"));
}

TEST(GpuAccessTest, SaysWhatIsMissing) {
  const TestFolder dev;
  EXPECT_THAT(AccessTo({0, "GPU-11aa", "L4", 24, {}}, dev.path()).status().message(),
              HasSubstr("no minor number of GPU-11aa"));
  EXPECT_THAT(AccessTo({0, "GPU-11aa", "L4", 24, 7}, dev.path()).status().message(),
              HasSubstr("there is no " + dev / "nvidia7"));
}

class CheckSeesGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status probe = program::ProbeSandbox();
    if (!probe.ok()) GTEST_SKIP() << probe.message();
    if (!std::filesystem::exists(kPython)) GTEST_SKIP() << "no " << kPython;
  }
  // Checks with a driver that shows so many devices.
  absl::Status Check(const std::string& devices) const {
    program::Request request;
    request.folder = folder_.path();
    request.environment = program::DescribePython("test", kPython).value();
    request.environment.folders.emplace_back(ABLATE_FAKE_CUDA);
    if (!devices.empty()) request.variables["LD_LIBRARY_PATH"] = ABLATE_FAKE_CUDA;
    request.variables["FAKE_CUDA"] = devices;
    return CheckSeesGpu(std::move(request));
  }
  const TestFolder folder_;
};

TEST_F(CheckSeesGpuTest, WantsExactlyOneDevice) {
  EXPECT_TRUE(Check("1").ok()) << Check("1");
  EXPECT_THAT(Check("0").message(), HasSubstr("can't use the GPU: CUDA shows 0 devices"));
  EXPECT_THAT(Check("2").message(), HasSubstr("CUDA shows 2 devices"));
  EXPECT_THAT(Check("-304").message(), HasSubstr("CUDA's error 304"));
}

TEST_F(CheckSeesGpuTest, NamesTheDriversLibraryIfThereIsNone) {
  if (std::filesystem::exists("/usr/lib/x86_64-linux-gnu/libcuda.so.1")) {
    GTEST_SKIP() << "this machine has CUDA's driver";
  }
  EXPECT_THAT(Check("").message(), HasSubstr("libcuda.so.1"));
}

}  // namespace
}  // namespace ablate::worker
