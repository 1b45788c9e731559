// Tests uploads that continue: storage::PartialUploads, and Blobs::Continue on top of it.
#include "storage/partial_uploads.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "storage/blobs.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000, kHour = 3600 * kSecond;
const char* const kBytes = "the bytes of an upload";

class PartialUploadsTest : public ::testing::Test {
 protected:
  PartialUploadsTest() : sha256_(Sha256Hex(kBytes)) { Open(); }
  void Open() {
    blobs_.reset();
    blobs_ = Value(Blobs::Open(Folder(), {[this] { return now_; }, nullptr}));
  }
  std::string Folder() const { return folder_.path() + "/blobs"; }
  absl::StatusOr<std::unique_ptr<Blobs::Writer>> Continue(uint64_t offset,
                                                          const std::string& user = "mia") {
    return blobs_->Continue(user, sha256_, offset, [] { return false; });
  }
  uint64_t Kept(const std::string& user = "mia") {
    return blobs_->partials().Find(user, sha256_).bytes;
  }
  // Breaks an upload of `user` after some of the bytes; `now_` becomes its date.
  void Break(const std::string& sent, const std::string& user, const std::string& sha256) {
    EXPECT_TRUE(Value(blobs_->Continue(user, sha256, 0, [] { return false; }))->Append(sent).ok());
    const std::string path =
        absl::StrCat(Folder(), "/partial/", Sha256Hex(user).substr(0, 16), "-", sha256);
    const timespec date{now_ / kSecond, now_ % kSecond * 1000};
    const timespec times[2] = {date, date};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  size_t Files() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Folder() + "/partial")) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  TestFolder folder_;
  int64_t now_ = 1'700'000'000 * kSecond;
  const std::string sha256_;
  std::unique_ptr<Blobs> blobs_;
};

TEST_F(PartialUploadsTest, ContinuesAnUploadThatBrokeAlsoAfterARestart) {
  EXPECT_EQ(Kept(), 0u);
  Break("the by", "mia", sha256_);
  EXPECT_EQ(Kept(), 6u);
  Open();
  auto writer = Value(Continue(6));
  EXPECT_EQ(writer->size(), 6u);
  EXPECT_TRUE(writer->Append("tes of an upload").ok());
  const auto pin = Value(writer->Publish(sha256_));
  EXPECT_EQ(Value(blobs_->Read(sha256_, 0, 100)), kBytes);
  writer.reset();
  EXPECT_EQ(Kept(), 0u);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(PartialUploadsTest, KeepsTheBytesOfAnUploadWhileTheServerIsKilled) {
  auto writer = Value(Continue(0));
  ASSERT_TRUE(writer->Append("the by").ok());
  const std::string copy = folder_.path() + "/copy";  // of the folder as a kill leaves it
  std::filesystem::copy(Folder(), copy, std::filesystem::copy_options::recursive);
  now_ = absl::ToUnixMicros(absl::Now());
  auto after = Value(Blobs::Open(copy, {[this] { return now_; }, nullptr}));
  EXPECT_EQ(after->partials().Find("mia", sha256_).bytes, 6u);
}

TEST_F(PartialUploadsTest, RefusesOtherOffsetsWithTheRightOne) {
  Break("the by", "mia", sha256_);
  for (const uint64_t offset : {uint64_t{5}, uint64_t{7}, ~uint64_t{0}}) {
    const absl::Status refused = Continue(offset).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(refused.message(), HasSubstr("expected 6, the number of bytes"));
  }
  EXPECT_EQ(Kept(), 6u);
  auto again = Value(Continue(0));
  EXPECT_EQ(Kept(), 0u);
}

TEST_F(PartialUploadsTest, KeepsUsersApart) {
  Break("the by", "mia", sha256_);
  EXPECT_EQ(Kept("bob"), 0u);
  EXPECT_THAT(Continue(6, "bob").status().message(), HasSubstr("expected 0"));
  EXPECT_EQ(Kept(), 6u);
}

TEST_F(PartialUploadsTest, RemovesBytesThatHaveAnotherHash) {
  Break("THE BY", "mia", sha256_);
  auto writer = Value(Continue(6));
  EXPECT_TRUE(writer->Append("tes of an upload").ok());
  EXPECT_EQ(writer->Publish(sha256_).status().code(), absl::StatusCode::kDataLoss);
  writer.reset();
  EXPECT_EQ(Files(), 0u);

  writer = Value(Continue(0));
  EXPECT_TRUE(writer->Append("other bytes").ok());
  EXPECT_EQ(writer->Publish(sha256_).status().code(), absl::StatusCode::kInvalidArgument);
  writer.reset();
  EXPECT_EQ(Files(), 0u);
}

TEST_F(PartialUploadsTest, RemovesBytesOfARefusedUpload) {
  auto writer = Value(Continue(0));
  EXPECT_TRUE(writer->Append("the by").ok());
  writer->Discard();
  writer.reset();
  EXPECT_EQ(Files(), 0u);
  writer = Value(Continue(0));
  writer.reset();
  EXPECT_EQ(Files(), 0u);  // of an upload that sent nothing
}

TEST_F(PartialUploadsTest, RemovesBytesThatCantBeRead) {
  Break("the by", "mia", sha256_);
  const auto truncate = [this] {
    for (const auto& entry : std::filesystem::directory_iterator(Folder() + "/partial")) {
      std::filesystem::resize_file(entry.path(), 3);
    }
    return false;
  };
  EXPECT_EQ(blobs_->Continue("mia", sha256_, 6, truncate).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(PartialUploadsTest, KeepsTheBytesOfAnUploadThatNobodyWaitsFor) {
  Break("the by", "mia", sha256_);
  EXPECT_EQ(blobs_->Continue("mia", sha256_, 6, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(Kept(), 6u);
  EXPECT_TRUE(Continue(6).ok());
}

TEST_F(PartialUploadsTest, LetsTwoUploadsOfTheSameBytesPass) {
  auto one = Value(Continue(0)), two = Value(Continue(0));
  EXPECT_TRUE(blobs_->partials().Find("mia", sha256_).in_use);
  ASSERT_TRUE(one->Append("the by").ok());
  EXPECT_EQ(Continue(6).status().code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(two->Append(kBytes).ok());
  ASSERT_TRUE(one->Append("tes of an upload").ok());
  EXPECT_TRUE(two->Publish(sha256_).ok());
  EXPECT_TRUE(one->Publish(sha256_).ok());
  EXPECT_EQ(Value(blobs_->Read(sha256_, 0, 100)), kBytes);
}

TEST_F(PartialUploadsTest, TakesTheFileOfASilentUpload) {
  auto silent = Value(Continue(0));
  ASSERT_TRUE(silent->Append("the by").ok());
  now_ += 6 * kSecond;
  EXPECT_FALSE(blobs_->partials().Find("mia", sha256_).in_use);
  auto writer = Value(Continue(6));
  EXPECT_EQ(silent->Append("tes of").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(silent->Publish("").status().code(), absl::StatusCode::kAborted);
  silent.reset();  // leaves the file alone
  ASSERT_TRUE(writer->Append("tes of an upload").ok());
  EXPECT_TRUE(writer->Publish(sha256_).ok());
  EXPECT_EQ(Value(blobs_->Read(sha256_, 0, 100)), kBytes);
}

TEST_F(PartialUploadsTest, RemovesUploadsThatMadeNoProgressForADay) {
  Break("the by", "mia", sha256_);
  now_ += 23 * kHour;
  blobs_->partials().Trim();
  EXPECT_EQ(Kept(), 6u);
  EXPECT_FALSE(Continue(7).ok());  // a wrong offset is no progress
  now_ += 2 * kHour;
  Open();
  EXPECT_EQ(Kept(), 0u);
}

TEST_F(PartialUploadsTest, BoundsTheUploadsOfAUserAndOfAll) {
  for (int i = 0; i < 6; ++i) {
    now_ += kSecond;
    Break("part", "mia", Sha256Hex(absl::StrCat(i)));
  }
  EXPECT_EQ(Files(), PartialUploads::kMaxFilesOfUser);
  EXPECT_EQ(blobs_->partials().Find("mia", Sha256Hex("1")).bytes, 0u);
  EXPECT_EQ(blobs_->partials().Find("mia", Sha256Hex("2")).bytes, 4u);
  for (size_t i = 0; i < PartialUploads::kMaxFiles; ++i) {
    now_ += kSecond;
    Break("part", absl::StrCat("user", i), sha256_);
  }
  EXPECT_EQ(Files(), PartialUploads::kMaxFiles);
  EXPECT_EQ(blobs_->partials().Find("mia", Sha256Hex("5")).bytes, 0u);
}

TEST_F(PartialUploadsTest, BoundsTheBytesOfAUser) {
  const std::string other = Sha256Hex("other");
  Break("part", "mia", sha256_);
  now_ += kSecond;
  Break("part", "mia", other);
  for (const auto& entry : std::filesystem::directory_iterator(Folder() + "/partial")) {
    const auto date = std::filesystem::last_write_time(entry.path());
    std::filesystem::resize_file(entry.path(), PartialUploads::kMaxBytesOfUser - 4);
    std::filesystem::last_write_time(entry.path(), date);
  }
  blobs_->partials().Trim();
  EXPECT_EQ(Kept(), 0u);
  EXPECT_GT(blobs_->partials().Find("mia", other).bytes, 4u);
}

TEST_F(PartialUploadsTest, MakesRoomOnAFullDiskExceptOfUploadsInProgress) {
  Break("the by", "mia", sha256_);
  auto writer = Value(Continue(0, "bob"));
  ASSERT_TRUE(writer->Append("the").ok());
  EXPECT_EQ(blobs_->FreeTrash(100), 6u);
  EXPECT_EQ(Kept(), 0u);
  EXPECT_EQ(Kept("bob"), 3u);
}

}  // namespace
}  // namespace ablate::storage
