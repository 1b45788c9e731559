// Tests the ballast, and a whole store on a disk that is really full.
#include "storage/disk_room.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/small_disk.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using Kind = DiskRoom::Kind;

constexpr uint64_t kBallast = 64 << 10;

class DiskRoomTest : public ::testing::Test {
 protected:
  std::string File() { return folder_.path() + "/ballast"; }
  TestFolder folder_;
};

TEST_F(DiskRoomTest, StoresNothingWhileTheBallastIsGone) {
  DiskRoom room(folder_.path(), kBallast);
  EXPECT_TRUE(absl::IsResourceExhausted(room.MayStore()));
  ASSERT_TRUE(room.Keep().ok());
  EXPECT_EQ(std::filesystem::file_size(File()), kBallast);
  EXPECT_TRUE(room.MayStore().ok());
  EXPECT_TRUE(room.Release());
  EXPECT_FALSE(std::filesystem::exists(File()));
  EXPECT_TRUE(absl::IsResourceExhausted(room.MayStore()));
  EXPECT_FALSE(room.Release());
  ASSERT_TRUE(room.Keep().ok());
  EXPECT_TRUE(room.MayStore().ok());
  EXPECT_TRUE(DiskRoom(folder_.path(), kBallast).MayStore().ok()) << "it is still there";
}

TEST_F(DiskRoomTest, TriesOnceMoreWithoutTheBallast) {
  DiskRoom room(folder_.path(), kBallast);
  ASSERT_TRUE(room.Keep().ok());
  int calls = 0;
  const auto full = [&] {
    ++calls;
    return absl::ResourceExhaustedError("full");
  };
  EXPECT_TRUE(absl::IsInternal(room.Try([] { return absl::InternalError("broken"); })));
  EXPECT_TRUE(room.MayStore().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(room.Try(full)));
  EXPECT_EQ(calls, 3) << "others may have made room, and then without the ballast";
  EXPECT_TRUE(absl::IsResourceExhausted(room.Try(full)));
  EXPECT_EQ(calls, 5) << "there was no ballast any more";
}

TEST_F(DiskRoomTest, GivesUpNothingForWorkThatFitsAtItsSecondTry) {
  DiskRoom room(folder_.path(), kBallast);
  ASSERT_TRUE(room.Keep().ok());
  int calls = 0;
  EXPECT_TRUE(room.Try([&] {
                    return ++calls == 1 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
                  })
                  .ok());
  EXPECT_TRUE(room.MayStore().ok());
}

TEST_F(DiskRoomTest, BelievesNoBallastWithoutBlocks) {
  std::ofstream(File()).close();
  std::filesystem::resize_file(File(), kBallast);  // a hole
  DiskRoom room(folder_.path(), kBallast);
  EXPECT_TRUE(absl::IsResourceExhausted(room.MayStore()));
}

TEST_F(DiskRoomTest, TakesABallastThatWasRemovedByHandForGivenUp) {
  DiskRoom room(folder_.path(), kBallast);
  ASSERT_TRUE(room.Keep().ok());
  std::filesystem::remove(File());
  EXPECT_TRUE(room.Release());
  ASSERT_TRUE(room.Keep().ok());
  EXPECT_EQ(std::filesystem::file_size(File()), kBallast);
}

TEST_F(DiskRoomTest, GoesOnWithoutABallastThatNoFileSystemHolds) {
  DiskRoom room(folder_.path() + "/missing", kBallast);
  EXPECT_FALSE(room.Keep().ok());
  DiskRoom none(folder_.path(), 0);
  EXPECT_TRUE(none.Keep().ok());
  EXPECT_TRUE(none.MayStore().ok());
  EXPECT_FALSE(none.Release());
  std::filesystem::create_directory(File());
  DiskRoom impossible(folder_.path(), kBallast);
  EXPECT_FALSE(impossible.Keep().ok());
  EXPECT_TRUE(impossible.MayStore().ok());
}

TEST_F(DiskRoomTest, CountsAMissingBallastAsUsed) {
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  DiskRoom room(folder_.path(), kHuge);
  EXPECT_EQ(Value(room.Free()), 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(room.Keep()));
  EXPECT_GT(Value(DiskRoom(folder_.path(), 0).Free()), 0u);
}

TEST_F(DiskRoomTest, IsFullUntilSomethingWasStored) {
  DiskRoom room(folder_.path(), 0);
  EXPECT_FALSE(room.full());
  room.Stored(Kind::kRows, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(room.full());
  room.Stored(Kind::kRows, absl::InvalidArgumentError("says nothing"));
  room.Stored(Kind::kBlobs, absl::OkStatus());
  EXPECT_TRUE(room.full());
  room.Stored(Kind::kRows, absl::OkStatus());
  EXPECT_FALSE(room.full());
  room.Stored(Kind::kBlobs, absl::ResourceExhaustedError("full"));
  room.Stored(Kind::kRows, absl::OkStatus());
  EXPECT_TRUE(room.full()) << "rows need less than blobs";
  room.Stored(Kind::kBlobs, absl::OkStatus());
  EXPECT_FALSE(room.full());
}

constexpr uint64_t kStoreBallast = 4 << 20;

constexpr uint64_t kForgotten = 8 << 20;

// Publishes a blob that nothing names.
bool PublishAndForget(Blobs* blobs) {
  auto upload = blobs->Create();
  return upload.ok() && (*upload)->Append(std::string(kForgotten, 'b')).ok() &&
         (*upload)->Publish("").ok();
}

// Fills the disk several times, with room in between; returns as the next one.
int FillAgainAndAgain(Store* store, const std::string& disk) {
  const std::string ballast = disk + "/data/ballast";
  for (const std::string run : {"e", "f", "g"}) {
    std::filesystem::remove(disk + "/other");
    const auto made = store->CreateExperiment(MakeExperiment({run}));
    if (!made.ok() || !store->CancelExperiment(made->id).ok()) return __LINE__;
    if (!store->Maintain().ok()) return __LINE__;
    std::error_code missing;
    if (std::filesystem::file_size(ballast, missing) != kStoreBallast) return __LINE__;
    Fill(disk + "/other");
    if (!store->DeleteExperiment(made->id).ok()) return __LINE__;
    if (std::filesystem::exists(ballast)) return __LINE__;
  }
  return 0;
}

// Runs on a full disk; returns the line of the first failed check, or 0.
int LiveOnAFullDisk(const std::string& disk) {
  StoreOptions options;
  options.folder = disk + "/data";
  options.ballast_bytes = kStoreBallast;
  auto store = Store::Open(options);
  if (!store.ok()) return __LINE__;
  const auto made = (*store)->CreateExperiment(MakeExperiment({"a", "b"}));
  if (!made.ok() || !(*store)->CancelExperiment(made->id).ok()) return __LINE__;
  if (!(*store)->Maintain().ok()) return __LINE__;
  Fill(disk + "/other");
  if (!absl::IsResourceExhausted((*store)->CreateExperiment(MakeExperiment({"c"})).status())) {
    return __LINE__;
  }
  if ((*store)->stalled() != "disk full") return __LINE__;
  if (!(*store)->DeleteExperiment(made->id).ok()) return __LINE__;
  if (Value((*store)->FreeBytes()) != 0) return __LINE__;
  // Room freed by the ballast isn't for others.
  if (!absl::IsResourceExhausted((*store)->CreateExperiment(MakeExperiment({"c"})).status())) {
    return __LINE__;
  }
  store->reset();
  Fill(disk + "/more");
  std::filesystem::resize_file(disk + "/more", std::filesystem::file_size(disk + "/more") / 2);
  store = Store::Open(options);
  if (!store.ok()) return __LINE__;
  std::filesystem::remove(disk + "/other");
  if (!(*store)->Maintain().ok()) return __LINE__;
  if (!(*store)->stalled().empty()) return __LINE__;
  if (!(*store)->CreateExperiment(MakeExperiment({"c"})).ok()) return __LINE__;
  store->reset();
  // With its ballast a server starts on a disk without a byte.
  Fill(disk + "/other");
  store = Store::Open(options);
  if (!store.ok()) return __LINE__;
  // Trash counts as room, and is removed when there is no other.
  std::filesystem::remove(disk + "/other");
  if (!(*store)->Maintain().ok() || !PublishAndForget((*store)->blobs())) return __LINE__;
  if (!(*store)->Maintain().ok()) return __LINE__;
  if ((*store)->blobs()->TrashBytes() != kForgotten) return __LINE__;
  store->reset();
  Fill(disk + "/other");
  store = Store::Open(options);
  if (!store.ok()) return __LINE__;
  // The store's thread may have removed the trash already, and written to the room.
  if (Value((*store)->FreeBytes()) < kForgotten / 2) return __LINE__;
  if (!(*store)->Maintain().ok() || !(*store)->stalled().empty()) return __LINE__;
  if ((*store)->blobs()->TrashBytes() != 0) return __LINE__;
  if (!(*store)->CreateExperiment(MakeExperiment({"d"})).ok()) return __LINE__;
  return FillAgainAndAgain(store->get(), disk);
}

// Tests a DONE run with a saved training state; returns likewise.
int LoseALastState(const std::string& disk) {
  StoreOptions options;
  options.folder = disk + "/data";
  options.ballast_bytes = kStoreBallast;
  auto store = Store::Open(options);
  if (!store.ok()) return __LINE__;
  NewExperiment experiment = MakeExperiment({"a"});
  experiment.runs[0].growth = "g";
  if (!(*store)->CreateExperiment(experiment).ok()) return __LINE__;
  auto pin = PublishIn((*store)->blobs(), std::string(kForgotten, 's'));
  if (pin == nullptr) return __LINE__;
  Lease lease(store->get(), "l", {"a"});
  lease.Send("a", MakeLosses(0, kSteps));
  lease.Send("a", ResumeStateEvent{kSteps, pin->sha256(), kForgotten});
  if (lease.Send("a", FinishedEvent{false, kSteps}) != Applied::kApplied) return __LINE__;
  pin.reset();
  NewRun longer = MakeRun("b", 2 * kSteps);
  longer.growth = "g";
  const auto shorter = [&] { return Value((*store)->LookUpRuns({longer}))[0].shorter.size(); };
  if (!(*store)->Maintain().ok() || shorter() != 1) return __LINE__;
  Fill(disk + "/other");
  if (!absl::IsResourceExhausted((*store)->CreateExperiment(MakeExperiment({"c"})).status())) {
    return __LINE__;
  }
  // Data that only saves time is removed to make room.
  if (!(*store)->Maintain().ok() || shorter() != 0) return __LINE__;
  const auto lost = Value((*store)->LookUpRuns({longer}))[0].lost;
  if (!lost || lost->why != "was deleted because the disk was full") return __LINE__;
  if (!(*store)->Maintain().ok() || !(*store)->stalled().empty()) return __LINE__;
  return (*store)->CreateExperiment(MakeExperiment({"c"})).ok() ? 0 : __LINE__;
}

TEST(RealFullDiskTest, DeletesAndStarts) { RunOnASmallDisk(LiveOnAFullDisk); }

TEST(RealFullDiskTest, LetsLastStatesGo) { RunOnASmallDisk(LoseALastState); }

}  // namespace
}  // namespace ablate::storage
