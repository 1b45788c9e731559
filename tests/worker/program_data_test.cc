// Tests the folders that programs' data are unpacked into.
#include "server/worker/program_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_set.h"
#include "tests/test_folder.h"

namespace ablate::worker {
namespace {

class ProgramDataTest : public ::testing::Test {
 protected:
  // Opens a data set of one file with so many bytes.
  std::shared_ptr<const ProgramData::Set> Open(const std::string& name, size_t bytes = 10) {
    const auto set = data_.Open(name, [&]() -> absl::StatusOr<SharedBytes> {
      ++reads_;
      const std::string content(bytes, 'x');
      return SharedBytes(PackFiles({{"file", content}}).value());
    });
    EXPECT_TRUE(set.ok()) << set.status();
    return set.ok() ? *set : nullptr;
  }
  bool Has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  const TestFolder folder_;
  ProgramData data_{folder_.path(), 2'500};
  int reads_ = 0;
};

TEST_F(ProgramDataTest, UnpacksADataSetOnce) {
  const auto first = Open("a"), second = Open("a");
  EXPECT_EQ(first, second);
  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(std::filesystem::file_size(first->folder() + "/file"), 10u);
}

TEST_F(ProgramDataTest, RemovesWhatWasUsedLongestAgoAndIsNotInUse) {
  Open("a", 1'000);
  Open("b", 1'000);
  Open("a", 1'000);
  const auto used = Open("used", 9'000);
  EXPECT_TRUE(Has("a") && Has("b") && Has("used"));
  Open("c", 1'000);
  Open("d", 10);
  EXPECT_FALSE(Has("b"));
  EXPECT_TRUE(Has("a") && Has("c") && Has("d") && Has("used"));
  reads_ = 0;
  Open("b", 1'000);
  EXPECT_EQ(reads_, 1);
}

TEST_F(ProgramDataTest, LeavesNothingOfAFailureBehind) {
  const std::string too_long(300, 'n');  // for a name, not for a path
  const std::string packed = PackFiles({{"a", "x"}, {too_long, "y"}}).value();
  const auto failed =
      data_.Open("set", [&] { return absl::StatusOr<SharedBytes>(SharedBytes(packed)); });
  EXPECT_FALSE(failed.ok());
  EXPECT_FALSE(Has("set"));
}

TEST_F(ProgramDataTest, UnpacksAgainAfterAFailure) {
  const auto failed =
      data_.Open("a", [] { return absl::StatusOr<SharedBytes>(absl::DataLossError("gone")); });
  EXPECT_EQ(failed.status().message(), "gone");
  const auto garbage = data_.Open(
      "a", [] { return absl::StatusOr<SharedBytes>(SharedBytes(std::string("garbage"))); });
  EXPECT_TRUE(absl::IsInvalidArgument(garbage.status())) << garbage.status();
  EXPECT_NE(Open("a"), nullptr);
}

}  // namespace
}  // namespace ablate::worker
