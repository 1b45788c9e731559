// Tests that acknowledged data stays: over kills, torn logs, full and failing disks.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "tests/storage/failing_disk.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DurabilityTest : public FileTest {};

// Ways in which a full disk refuses.
class FullDiskTest : public FileTest, public ::testing::WithParamInterface<bool> {
 protected:
  FullDiskTest() { disk_.by_quota = GetParam(); }
  FailingDisk disk_;
};
INSTANTIATE_TEST_SUITE_P(, FullDiskTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "ByQuota" : "ByItself"; });

TEST_F(DurabilityTest, KeepsWhatWasAcknowledgedWhenKilled) {
  for (int round = 0; round < 3; ++round) {
    int acks[2];
    ASSERT_EQ(pipe(acks), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = Store::Open(Options());
      if (!store.ok()) _exit(1);
      if (round == 0) Begin(store->get());
      for (uint32_t step = Count(store->get());; ++step) {
        if (!ApplyAndWait(**store, "i", {Point(step)}).ok()) _exit(2);
        if (write(acks[1], &step, sizeof(step)) != sizeof(step)) _exit(3);
      }
    }
    close(acks[1]);
    uint32_t last = 0;
    for (int i = 0; i < 20 + round * 7; ++i) {
      ASSERT_EQ(read(acks[0], &last, sizeof(last)), static_cast<ssize_t>(sizeof(last)));
    }
    kill(child, SIGKILL);
    while (read(acks[0], &last, sizeof(last)) == static_cast<ssize_t>(sizeof(last))) {
    }
    close(acks[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    auto store = Value(Store::Open(Options()));
    const uint32_t stored = Count(store.get());
    EXPECT_GE(stored, last + 1);
    EXPECT_LE(stored, last + 2);  // the one in progress
    EXPECT_EQ(Value(store->CheckLease("l", "i", 1)).acked, stored);
    EXPECT_EQ(Value(store->Summaries({"a"}))[0].keys[0].count, stored);
  }
}

TEST_F(DurabilityTest, ReadsEveryTornLog) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  const std::string log = absl::StrCat(Database(), "-wal");
  std::vector<uintmax_t> sizes;  // of the log, after each acknowledgement
  for (uint32_t step = 0; step < 8; ++step) {
    ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(step)}).ok());
    sizes.push_back(std::filesystem::file_size(log));
  }
  const std::string copy = absl::StrCat(folder_.path(), "/copy");
  StoreOptions options = Options();
  options.folder = copy;
  for (uintmax_t size = sizes[3]; size <= sizes[7]; size += 3571) {
    std::filesystem::remove_all(copy);
    std::filesystem::copy(Options().folder, copy);
    std::filesystem::remove(absl::StrCat(copy, "/ablate.db-shm"));
    std::filesystem::resize_file(absl::StrCat(copy, "/ablate.db-wal"), size);
    auto torn = Value(Store::Open(options));
    ASSERT_NE(torn, nullptr);
    uint32_t expected = 0;
    while (expected < sizes.size() && sizes[expected] <= size) ++expected;
    EXPECT_EQ(Count(torn.get()), expected);
    EXPECT_EQ(Value(torn->CheckLease("l", "i", 1)).acked, expected);
  }
}

TEST_P(FullDiskTest, ChangesNothingWhileTheDiskIsFull) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  const uint64_t change = store->change_number();
  disk_.room = 0;
  for (int i = 0; i < 3; ++i) {
    const auto refused = ApplyAndWait(*store, "i", {Point(1)});
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kResourceExhausted) << refused.status();
    EXPECT_EQ(CodeOf(store->CreateExperiment(MakeExperiment({"b"}))),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(CodeOf(EndLeaseAndWait(*store, "l", {LeaseEnd::kLost, ""})),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(store->change_number(), change);
  EXPECT_EQ(Count(store.get()), 1u);
  EXPECT_EQ(CodeOf(store->GetRun("b")), absl::StatusCode::kNotFound);
  EXPECT_EQ(Value(store->GetRun("a")).losses, 0u);
  disk_.room = INT64_MAX;
  EXPECT_THAT(Value(ApplyAndWait(*store, "i", {Point(1)})), ElementsAre(Applied::kApplied));
  EXPECT_EQ(Count(store.get()), 2u);
  EXPECT_TRUE(fatal_.ok()) << fatal_;
  store.reset();
  store = Value(Store::Open(Options()));
  EXPECT_EQ(Count(store.get()), 2u);
}

TEST_P(FullDiskTest, RecoversFromAFullDiskAtAnyMoment) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  uint32_t steps = 0;
  int full = 0;
  for (int64_t room = 1000; room < 400000; room += 37000) {
    disk_.room = room;
    for (int i = 0; i < 4; ++i) {
      std::vector<LeaseEvent> events;
      for (uint32_t k = 0; k < 60; ++k) events.push_back(Point(steps + k));
      const auto applied = ApplyAndWait(*store, "i", events);
      if (applied.ok()) {
        steps += 60;
      } else {
        EXPECT_EQ(CodeOf(applied), absl::StatusCode::kResourceExhausted) << applied.status();
        ++full;
      }
      const absl::Status maintained = store->Maintain();
      EXPECT_TRUE(maintained.ok() || absl::IsResourceExhausted(maintained)) << maintained;
      EXPECT_EQ(Count(store.get()), steps);
    }
    disk_.room = INT64_MAX;
  }
  EXPECT_GT(full, 5);
  EXPECT_GT(steps, 0u);
  EXPECT_TRUE(ApplyAndWait(*store, "i", {Point(steps)}).ok());
  EXPECT_TRUE(fatal_.ok()) << fatal_;
}

// Work that needs room before it frees any must not block the sweep.
TEST_P(FullDiskTest, SweepsBlobsWhileTheDiskIsFull) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  store.reset();
  Alter(Database(), "INSERT INTO uncompacted SELECT id FROM runs");
  const std::string blob = Options().folder + "/blobs/" + Sha256Hex("lost");
  std::ofstream(blob) << "lost";
  disk_.room = 0;
  store = Value(Store::Open(Options()));
  EXPECT_EQ(CodeOf(store->Maintain()), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(std::filesystem::exists(blob));
  disk_.room = INT64_MAX;
  EXPECT_TRUE(store->Maintain().ok());
  EXPECT_EQ(Count(store.get()), 1u);
}

// A disk that is full except for the ballast.
class BallastTest : public FullDiskTest {
 protected:
  BallastTest() {
    disk_.ballast = Options().folder + "/ballast";
    disk_.ballast_bytes = kBallast;
  }
  StoreOptions WithBallast() {
    StoreOptions options = Options();
    options.ballast_bytes = kBallast;
    return options;
  }
  bool HasBallast() { return std::filesystem::exists(disk_.ballast); }
  static constexpr int64_t kBallast = 1 << 20;
};
INSTANTIATE_TEST_SUITE_P(, BallastTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "ByQuota" : "ByItself"; });

TEST_P(BallastTest, IsGivenUpForDeletesAndTakenAgain) {
  auto store = Value(Store::Open(WithBallast()));
  Begin(store.get());
  const std::string active = Value(store->CreateExperiment(MakeExperiment({"b"}))).id;
  ASSERT_TRUE(store->CreateAnalysis({"x", "signature", "request", {}, {}}, 1).ok());
  ASSERT_TRUE(store->Maintain().ok());
  EXPECT_EQ(std::filesystem::file_size(disk_.ballast), uintmax_t{kBallast});
  disk_.room = 0;
  EXPECT_EQ(CodeOf(ApplyAndWait(*store, "i", {Point(0)})), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(HasBallast());
  EXPECT_EQ(store->stalled(), "disk full");
  EXPECT_EQ(Value(store->CancelAnalysis("x")).state, AnalysisState::kCancelled);
  EXPECT_TRUE(store->CancelExperiment(active).ok());
  EXPECT_TRUE(store->DeleteExperiment(active).ok());
  EXPECT_EQ(CodeOf(store->GetExperiment(active)), absl::StatusCode::kNotFound);
  store->Maintain().IgnoreError();
  EXPECT_EQ(CodeOf(store->GetRun("b")), absl::StatusCode::kNotFound);
  disk_.room = INT64_MAX;
  ASSERT_TRUE(store->Maintain().ok());
  EXPECT_TRUE(HasBallast());
  EXPECT_EQ(store->stalled(), "");
  EXPECT_THAT(Value(ApplyAndWait(*store, "i", {Point(0)})), ElementsAre(Applied::kApplied));
  EXPECT_TRUE(fatal_.ok()) << fatal_;
}

TEST_P(BallastTest, IsTakenAgainByTheFirstWriteThatFindsRoom) {
  auto store = Value(Store::Open(WithBallast()));
  Begin(store.get());
  const std::string active = Value(store->CreateExperiment(MakeExperiment({"b"}))).id;
  ASSERT_TRUE(store->Maintain().ok());
  disk_.room = 0;
  EXPECT_TRUE(store->CancelExperiment(active).ok());
  disk_.room = INT64_MAX;
  EXPECT_THAT(Value(ApplyAndWait(*store, "i", {Point(0)})), ElementsAre(Applied::kApplied));
  EXPECT_TRUE(HasBallast());
}

// Here the new database needs the room.
TEST_P(BallastTest, IsGivenUpForAStart) {
  std::filesystem::create_directories(Options().folder);
  std::ofstream(disk_.ballast) << std::string(kBallast, 'x');
  disk_.room = 0;
  auto store = Store::Open(WithBallast());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(Value((*store)->ListExperiments(kServer, {}, "", 9)).empty());
}

TEST_F(DurabilityTest, GoesOnWhenTheIndexOfTheLogCannotGrow) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  Column large{"large", {}, {}};
  for (uint32_t i = 0; i < (20u << 20) / sizeof(double); ++i) {  // more than one region's pages
    large.steps.push_back(i);
    large.values.push_back(i / 3.0);
  }
  disk.fail_index = true;
  const auto refused = ApplyAndWait(*store, "i", {{"l", 1, MakePoints(0, {large})}});
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kResourceExhausted) << refused.status();
  EXPECT_THAT(Value(ApplyAndWait(*store, "i", {Point(0)})), ElementsAre(Applied::kApplied));
  EXPECT_EQ(Count(store.get()), 1u);
  EXPECT_TRUE(fatal_.ok()) << fatal_;
}

TEST_F(DurabilityTest, EndsWhenASyncFails) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  disk.fail_sync = true;
  EXPECT_EQ(CodeOf(ApplyAndWait(*store, "i", {Point(1)})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(fatal_), absl::StatusCode::kDataLoss);
  disk.fail_sync = false;
  // It is unknown if the pages reached the disk: only a new process may go on.
  EXPECT_EQ(CodeOf(ApplyAndWait(*store, "i", {Point(1)})), absl::StatusCode::kDataLoss);
  store.reset();
  fatal_ = absl::OkStatus();
  store = Value(Store::Open(Options()));
  EXPECT_GE(Count(store.get()), 1u);
}

TEST_F(DurabilityTest, EndsWhenACheckpointsSyncFails) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(store->Maintain().ok());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  disk.fail_sync = true;
  EXPECT_FALSE(store->Maintain().ok());
  EXPECT_EQ(CodeOf(fatal_), absl::StatusCode::kDataLoss);
  disk.fail_sync = false;
}

// Mishaps to the files of a running server.
struct Mishap {
  const char* name;
  void (*happen)(const std::string& database);
  const char* moved_to = "";  // behind the folder's name, if the file is still somewhere
};

class MishapTest : public FileTest, public ::testing::WithParamInterface<Mishap> {};
INSTANTIATE_TEST_SUITE_P(
    , MishapTest,
    ::testing::Values(Mishap{"Removed", [](const std::string& db) { std::filesystem::remove(db); }},
                      Mishap{"Replaced",
                             [](const std::string& db) {
                               std::filesystem::copy_file(db, db + ".older");
                               std::filesystem::rename(db + ".older", db);
                             }},
                      Mishap{"Moved",
                             [](const std::string& db) {
                               const std::filesystem::path folder =
                                   std::filesystem::path(db).parent_path();
                               std::filesystem::rename(folder, folder.string() + "-away");
                               std::filesystem::create_directory(folder);
                             },
                             "-away"}),
    [](const auto& mishap) { return mishap.param.name; });

TEST_P(MishapTest, Ends) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  ASSERT_TRUE(store->Maintain().ok());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(1)}).ok());
  EXPECT_TRUE(fatal_.ok()) << fatal_;
  GetParam().happen(Database());
  EXPECT_EQ(CodeOf(ApplyAndWait(*store, "i", {Point(2)})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(fatal_), absl::StatusCode::kDataLoss);
  EXPECT_THAT(fatal_.message(), HasSubstr("/ablate.db was moved, removed or replaced"));
  store.reset();
  const std::string moved_to = GetParam().moved_to;
  if (moved_to.empty()) return;
  // Acknowledged data is in the file itself.
  std::filesystem::remove(Options().folder);
  std::filesystem::rename(Options().folder + moved_to, Options().folder);
  std::filesystem::remove(Database() + "-wal");
  std::filesystem::remove(Database() + "-shm");
  fatal_ = absl::OkStatus();
  store = Value(Store::Open(Options()));
  // The refused one is stored unless a background read noticed first.
  EXPECT_THAT(Count(store.get()), AnyOf(2u, 3u));
}

// SQLite would apply a log to any database at that path.
TEST_F(DurabilityTest, LeavesNoLogToADatabaseThatReplacedItsOwn) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  ASSERT_TRUE(store->Maintain().ok());
  const std::string older = folder_.path() + "/older.db";
  std::filesystem::copy_file(Database(), older);
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(1)}).ok());
  std::filesystem::rename(older, Database());
  EXPECT_EQ(CodeOf(ApplyAndWait(*store, "i", {Point(2)})), absl::StatusCode::kDataLoss);
  store.reset();
  fatal_ = absl::OkStatus();
  store = Value(Store::Open(Options()));
  EXPECT_EQ(Count(store.get()), 1u);
}

TEST_P(FullDiskTest, MakesRoomOfTheTrash) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  const std::string sha256 = PublishIn(store->blobs(), "data")->sha256();
  ASSERT_EQ(Value(store->blobs()->Sweep(sha256, /*keep=*/true)), Swept::kTrashed);
  disk_.room = 0;
  EXPECT_EQ(CodeOf(ApplyAndWait(*store, "i", {Point(0)})), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(std::filesystem::exists(Options().folder + "/blobs/trash/" + sha256));
  disk_.room = INT64_MAX;
  EXPECT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
}

TEST_F(DurabilityTest, EndsTheProcessByDefault) {
  FailingDisk disk;
  const auto fail = [&] {
    StoreOptions options = Options();
    options.fatal = nullptr;
    auto store = Value(Store::Open(options));
    Begin(store.get());
    disk.fail_sync = true;
    ApplyAndWait(*store, "i", {Point(0)}).IgnoreError();
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(EXIT_FAILURE), "cannot be trusted");
}

TEST_F(DurabilityTest, LivesWithARunWhosePointsAreMalformed) {
  auto store = Value(Store::Open(Options()));
  ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"b", "a"})).ok());
  Lease lease(store.get(), "l", {"b", "a"}, "w", "i");
  for (const std::string run : {"a", "b"})
    lease.Send(run, MakePoints(1, {MakeColumn("x", {0}, {0})}));
  store.reset();
  Alter(Database(),
        "UPDATE row_groups SET data = x'ff' WHERE run = (SELECT id FROM runs WHERE name = 'b'); "
        "INSERT INTO uncompacted SELECT id FROM runs");
  store = Value(Store::Open(Options()));
  EXPECT_TRUE(store->Maintain().ok());
  const auto piece = [](const auto&, const auto&) { return true; };
  EXPECT_EQ(CodeOf(store->ReadSeries({"b", "x"}, piece)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Value(store->RunEvents("b")).back().kind, "damaged");
  EXPECT_EQ(Count(store.get()), 1u);
  EXPECT_TRUE(fatal_.ok()) << fatal_;
}

TEST_F(DurabilityTest, EndsWhenTheFileIsCorrupt) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(store->Maintain().ok());
  const uintmax_t size = std::filesystem::file_size(Database());
  {
    std::fstream file(Database(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(size - 4096, 'x');
  }
  EXPECT_EQ(CodeOf(store->GetRun("a")), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(fatal_), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ablate::storage
