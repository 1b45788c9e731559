// Tests the limits of cgroups.
#include "base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/test_folder.h"

namespace ablate::process {
namespace {

class CoresTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const TestFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(CoresTest, FindsTheSmallestQuotaOnTheWayUp) {
  Write("a/cpu.max", "300000 100000\n");
  Write("a/b/cpu.max", "max 100000\n");
  Write("a/b/c/cpu.max", "350000 100000\n");
  EXPECT_EQ(CgroupQuota(root_, "0::/a/b/c\n"), 3.0);
}

TEST_F(CoresTest, ReadsTheRootOfAContainer) {
  Write("cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupQuota(root_, "0::/\n"), 1.5);
}

TEST_F(CoresTest, ReadsVersion1) {
  Write("cpu/job/cpu.cfs_quota_us", "200000\n");
  Write("cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupQuota(root_, "5:cpuset:/x\n3:cpu,cpuacct:/job\n0::/\n"), 2.0);
}

TEST_F(CoresTest, FindsNoneWhereNoneIsSet) {
  Write("cpu.max", "max 100000\n");
  Write("cpu/cpu.cfs_quota_us", "-1\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupQuota(root_, "3:cpu:/\n0::/\n"), std::nullopt);
  EXPECT_EQ(CgroupQuota(root_, "0::/missing/folder\n"), std::nullopt);
  EXPECT_EQ(CgroupQuota(root_, ""), std::nullopt);
  EXPECT_EQ(CgroupQuota(root_, "nonsense"), std::nullopt);
}

TEST_F(CoresTest, FindsTheSmallestMemoryLimit) {
  Write("a/memory.max", "max\n");
  Write("a/b/memory.max", "4294967296\n");
  Write("memory/job/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(CgroupMemory(root_, "0::/a\n"), std::nullopt);
  EXPECT_EQ(CgroupMemory(root_, "0::/a/b\n"), 4294967296.0);
  EXPECT_EQ(CgroupMemory(root_, "3:cpu:/job\n4:memory:/job\n0::/a/b\n"), 1073741824.0);
}

TEST(UsableMemoryTest, IsSomeAndNoMoreThanMachinesHave) {
  EXPECT_GT(UsableMemory(), 1u << 20);
  EXPECT_LT(UsableMemory(), uint64_t{1} << 50);
}

TEST(UsableCoresTest, IsAtLeastOne) { EXPECT_GE(UsableCores(), 1); }

}  // namespace
}  // namespace ablate::process
