#include "base/shared_bytes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "tests/test_folder.h"

namespace ablate {
namespace {

class SharedBytesTest : public ::testing::Test {
 protected:
  std::string FileWith(const std::string& bytes) const {
    const std::string file = folder_.path() + "/file";
    std::ofstream(file) << bytes;
    return file;
  }
  TestFolder folder_;
};

TEST_F(SharedBytesTest, AreThoseOfAStringOrAFile) {
  const std::string text(100'000, 'a');
  const SharedBytes of_string = text;
  EXPECT_EQ(of_string.view(), text);
  EXPECT_FALSE(of_string.of_file());
  const absl::StatusOr<SharedBytes> of_file = SharedBytes::OfFile(FileWith(text));
  ASSERT_TRUE(of_file.ok());
  EXPECT_EQ(of_file->view(), text);
  EXPECT_TRUE(of_file->of_file());
}

TEST_F(SharedBytesTest, OutliveTheFileAndEachOther) {
  const std::string file = FileWith("bytes");
  std::optional<SharedBytes> first = *SharedBytes::OfFile(file);
  const SharedBytes second = *first;
  first.reset();
  std::remove(file.c_str());
  EXPECT_EQ(second.view(), "bytes");
}

TEST_F(SharedBytesTest, DontWriteToTheFile) {
  const std::string file = FileWith("bytes");
  const SharedBytes bytes = *SharedBytes::OfFile(file);
  const_cast<char*>(bytes.view().data())[0] = 'x';
  EXPECT_EQ(bytes.view(), "xytes");
  EXPECT_EQ(SharedBytes::OfFile(file)->view(), "bytes");
}

TEST_F(SharedBytesTest, AreNoneOfAnEmptyFile) {
  const absl::StatusOr<SharedBytes> bytes = SharedBytes::OfFile(FileWith(""));
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->view(), "");
  EXPECT_EQ(SharedBytes().view(), "");
}

TEST_F(SharedBytesTest, SayWhyAFileCantBeRead) {
  EXPECT_TRUE(absl::IsNotFound(SharedBytes::OfFile(folder_.path() + "/none").status()));
  EXPECT_TRUE(absl::IsNotFound(SharedBytes::OfFile(folder_.path()).status()));
}

}  // namespace
}  // namespace ablate
