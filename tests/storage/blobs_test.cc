// Tests content-addressed files.
#include "storage/blobs.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class BlobsTest : public ::testing::Test {
 protected:
  BlobsTest() { Open(); }
  void Open() {
    blobs_ = Value(Blobs::Open(
        folder_.path() + "/blobs",
        {[this] { return now_; }, [this](const std::string& line) { log_.push_back(line); }}));
  }

  std::shared_ptr<Blobs::Pin> Publish(const std::string& bytes) {
    auto writer = Value(blobs_->Create());
    EXPECT_TRUE(writer->Append(bytes).ok());
    return Value(writer->Publish(Sha256Hex(bytes)));
  }
  size_t Files() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/blobs")) {
      if (entry.is_regular_file()) ++count;
    }
    return count;
  }
  // Publishes bytes and sweeps them. Returns their hash.
  std::string Discard(const std::string& bytes) {
    EXPECT_NE(Publish(bytes), nullptr);
    EXPECT_EQ(Value(blobs_->Sweep(Sha256Hex(bytes), /*keep=*/true)), Swept::kTrashed);
    return Sha256Hex(bytes);
  }
  bool InTrash(const std::string& sha256) {
    return std::filesystem::exists(folder_.path() + "/blobs/trash/" + sha256);
  }

  TestFolder folder_;
  int64_t now_ = 1'700'000'000'000'000;
  std::vector<std::string> log_;
  std::unique_ptr<Blobs> blobs_;
};

TEST_F(BlobsTest, PublishesUnderTheHash) {
  auto writer = Value(blobs_->Create());
  ASSERT_TRUE(writer->Append("hello ").ok());
  ASSERT_TRUE(writer->Append("world").ok());
  EXPECT_EQ(writer->size(), 11u);
  const auto pin = Value(writer->Publish(""));
  EXPECT_EQ(pin->sha256(), Sha256Hex("hello world"));
  EXPECT_EQ(pin->size(), 11u);
  EXPECT_EQ(CodeOf(writer->Publish("")), absl::StatusCode::kFailedPrecondition);
  writer.reset();
  EXPECT_EQ(Value(blobs_->Size(pin->sha256())), 11u);
  EXPECT_EQ(Files(), 1u);
  struct stat found;
  ASSERT_EQ(stat((folder_.path() + "/blobs/" + pin->sha256()).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(BlobsTest, ReadsRanges) {
  const std::string sha256 = Publish("0123456789")->sha256();
  EXPECT_EQ(Value(blobs_->Read(sha256, 0, 100)), "0123456789");
  EXPECT_EQ(Value(blobs_->Read(sha256, 3, 4)), "3456");
  EXPECT_EQ(Value(blobs_->Read(sha256, 10, 4)), "");
  EXPECT_EQ(Value(blobs_->Read(sha256, 2, UINT64_MAX)), "23456789");
  EXPECT_EQ(CodeOf(blobs_->Read(sha256, 11, 1)), absl::StatusCode::kOutOfRange);
}

TEST_F(BlobsTest, RefusesBytesThatDoNotMatchTheirHash) {
  auto writer = Value(blobs_->Create());
  ASSERT_TRUE(writer->Append("hello").ok());
  const auto published = writer->Publish(Sha256Hex("other"));
  EXPECT_EQ(CodeOf(published), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(published.status().message(), HasSubstr(Sha256Hex("hello")));
  writer.reset();
  EXPECT_EQ(Files(), 0u);
}

TEST_F(BlobsTest, RemovesAnUploadThatIsGivenUp) {
  auto writer = Value(blobs_->Create());
  ASSERT_TRUE(writer->Append("hello").ok());
  EXPECT_EQ(Files(), 1u);
  writer.reset();
  EXPECT_EQ(Files(), 0u);
}

TEST_F(BlobsTest, KnowsNothingElseThanBlobs) {
  std::ofstream(folder_.path() + "/secret") << "x";
  for (const std::string& name :
       {std::string("../secret"), std::string(), std::string(64, 'A'), std::string(64, '/'),
        Sha256Hex("unknown"), Sha256Hex("unknown") + "0"}) {
    EXPECT_EQ(CodeOf(blobs_->Read(name, 0, 1)), absl::StatusCode::kNotFound);
    EXPECT_EQ(CodeOf(blobs_->Size(name)), absl::StatusCode::kNotFound);
    EXPECT_EQ(CodeOf(blobs_->Find(name)), absl::StatusCode::kNotFound);
    EXPECT_EQ(Value(blobs_->Sweep(name, /*keep=*/true)), Swept::kAbsent);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/secret"));
}

TEST_F(BlobsTest, SweepsOnlyWhatNobodyHolds) {
  auto first = Publish("data");
  auto second = Value(blobs_->Find(first->sha256()));
  const std::string sha256 = first->sha256();
  EXPECT_EQ(Value(blobs_->Sweep(sha256, /*keep=*/true)), Swept::kHeld);
  first.reset();
  EXPECT_EQ(Value(blobs_->Sweep(sha256, /*keep=*/true)), Swept::kHeld);
  EXPECT_THAT(blobs_->TakeUnpinned(), IsEmpty());
  second.reset();
  EXPECT_THAT(blobs_->TakeUnpinned(), ElementsAre(sha256));
  EXPECT_THAT(blobs_->TakeUnpinned(), IsEmpty());
  EXPECT_EQ(Value(blobs_->Sweep(sha256, /*keep=*/true)), Swept::kTrashed);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(BlobsTest, GivesBackWhatIsInTheTrash) {
  const std::string found = Discard("found"), read = Discard("read"), looked = Discard("looked at");
  EXPECT_THAT(Value(blobs_->List()), IsEmpty());
  EXPECT_EQ(Value(blobs_->Find(found))->size(), 5u);
  EXPECT_EQ(Value(blobs_->Read(read, 0, 9)), "read");
  EXPECT_EQ(Value(blobs_->Size(looked)), 9u);
  EXPECT_THAT(Value(blobs_->List()), UnorderedElementsAre(found, read, looked));
  // A blob that came back is swept again, and its upload ignores an earlier one in the trash.
  EXPECT_EQ(Discard("read"), read);
  EXPECT_EQ(Publish("read")->sha256(), read);
  EXPECT_TRUE(InTrash(read));
  EXPECT_EQ(Discard("read"), read);
}

TEST_F(BlobsTest, RemovesForGoodWhatIsNotWorthKeeping) {
  const std::string sha256 = Publish("state")->sha256();
  EXPECT_EQ(Value(blobs_->Sweep(sha256, /*keep=*/false)), Swept::kRemoved);
  EXPECT_EQ(CodeOf(blobs_->Find(sha256)), absl::StatusCode::kNotFound);
}

TEST_F(BlobsTest, EmptiesTheTrashByAge) {
  const std::string old = Discard("old");
  now_ += 5'000'000;
  const std::string young = Discard("young");
  EXPECT_EQ(Value(blobs_->EmptyTrash(now_ - 5'000'000)), 0u);
  EXPECT_EQ(Value(blobs_->EmptyTrash(now_)), 1u);
  EXPECT_FALSE(InTrash(old));
  EXPECT_TRUE(InTrash(young));
  EXPECT_EQ(CodeOf(blobs_->Find(old)), absl::StatusCode::kNotFound);
}

TEST_F(BlobsTest, MakesRoomOfTheOldestInTheTrash) {
  EXPECT_EQ(blobs_->FreeTrash(1), 0u);
  const std::string young = Discard("young");
  now_ -= 5'000'000;
  const std::string old = Discard("older");
  EXPECT_EQ(blobs_->FreeTrash(3), 5u);
  EXPECT_FALSE(InTrash(old));
  EXPECT_TRUE(InTrash(young));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("removed the 1 oldest blobs")));
  EXPECT_EQ(blobs_->FreeTrash(UINT64_MAX), 5u);
  EXPECT_FALSE(InTrash(young));
}

TEST_F(BlobsTest, ListsBlobsWithoutUploads) {
  Publish("a");
  Publish("b");
  const auto upload = Value(blobs_->Create());
  EXPECT_THAT(Value(blobs_->List()), UnorderedElementsAre(Sha256Hex("a"), Sha256Hex("b")));
}

TEST_F(BlobsTest, RemovesTemporaryFilesWhenOpened) {
  Publish("a");
  std::ofstream(folder_.path() + "/blobs/upload-abcdef") << "half";
  Open();
  EXPECT_EQ(Files(), 1u);
  EXPECT_EQ(Value(blobs_->Read(Sha256Hex("a"), 0, 9)), "a");
}

TEST_F(BlobsTest, FindsWhatWasPublishedOnlyOnceTheFolderIsSynced) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer beside it looks at memory through a pipe: it needs file numbers";
#endif
  // The number of the upload's next descriptor; without it the folder can't be opened to be synced.
  const int number = dup(0);
  close(number);
  auto writer = Value(blobs_->Create());
  ASSERT_TRUE(writer->Append("data").ok());
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{static_cast<rlim_t>(number), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto published = writer->Publish("");
  const auto found = blobs_->Find(Sha256Hex("data"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(published.ok());
  EXPECT_FALSE(found.ok());
  EXPECT_TRUE(blobs_->Find(Sha256Hex("data")).ok());
}

TEST_F(BlobsTest, LetsPinsOutliveIt) {
  const auto pin = Publish("a");
  blobs_.reset();
  EXPECT_EQ(pin->size(), 1u);
}

}  // namespace
}  // namespace ablate::storage
