// What was acknowledged stays: over kills, torn logs, full and failing disks; and files that are
// not ours to touch are left alone.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/folder.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/statement.h"
#include "tests/storage/failing_disk.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DurabilityTest : public ::testing::Test {
 protected:
  StoreOptions Options() {
    StoreOptions options;
    options.folder = absl::StrCat(folder_.path(), "/data");
    options.fatal = [this](const absl::Status& why) { fatal_ = why; };
    return options;
  }
  std::string Database() { return absl::StrCat(Options().folder, "/ablate.db"); }
  // One point of run "a".
  static LeaseEvent Point(uint32_t step) {
    return {"l", step + 1, "a", MakePoints(0, {MakeColumn("x", {step}, {step * 0.5})})};
  }
  static void Begin(Store* store) {
    ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"a"})).ok());
    ASSERT_TRUE(store->Grant("l", {"w", "i", "d", "b", "t"}, {"a"}).ok());
  }
  // Steps of run "a"; each must have the value it was sent with.
  static uint32_t Count(Store* store) {
    uint32_t next = 0;
    const absl::Status status =
        store->ReadSeries({"a", "x"}, [&](const auto& steps, const auto& values) {
          for (size_t i = 0; i < steps.size(); ++i) {
            EXPECT_EQ(steps[i], next);
            EXPECT_EQ(values[i], next++ * 0.5);
          }
          return true;
        });
    EXPECT_TRUE(status.ok()) << status;
    return next;
  }

  TemporaryFolder folder_;
  absl::Status fatal_;
};

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
        if (!(*store)->Apply("i", {Point(step)}).ok()) _exit(2);
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
    EXPECT_LE(stored, last + 2);  // the one that was under way
    EXPECT_EQ(Value(store->CheckLease("l", "i", 1)).acked, stored);
    EXPECT_EQ(Value(store->Summaries({"a"}))[0][0].count, stored);
  }
}

// A power cut keeps what was synced and any part of what was not: the log is cut at every so many
// bytes after what was acknowledged.
TEST_F(DurabilityTest, ReadsEveryTornLog) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  const std::string log = absl::StrCat(Database(), "-wal");
  std::vector<uintmax_t> sizes;  // of the log, after each acknowledgement
  for (uint32_t step = 0; step < 8; ++step) {
    ASSERT_TRUE(store->Apply("i", {Point(step)}).ok());
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

TEST_F(DurabilityTest, ChangesNothingWhileTheDiskIsFull) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(store->Apply("i", {Point(0)}).ok());
  const uint64_t change = store->change_number();
  disk.room = 0;
  for (int i = 0; i < 3; ++i) {
    const auto refused = store->Apply("i", {Point(1)});
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kResourceExhausted) << refused.status();
    EXPECT_EQ(CodeOf(store->CreateExperiment(MakeExperiment({"b"}))),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(CodeOf(store->EndLease("l", LeaseEnd::kLost, {}, "")),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(store->change_number(), change);
  EXPECT_EQ(Count(store.get()), 1u);
  EXPECT_EQ(CodeOf(store->GetRun("b")), absl::StatusCode::kNotFound);
  EXPECT_EQ(Value(store->GetRun("a")).losses, 0u);
  disk.room = INT64_MAX;
  EXPECT_THAT(Value(store->Apply("i", {Point(1)})), ElementsAre(Applied::kApplied));
  EXPECT_EQ(Count(store.get()), 2u);
  EXPECT_TRUE(fatal_.ok()) << fatal_;
  store.reset();
  store = Value(Store::Open(Options()));
  EXPECT_EQ(Count(store.get()), 2u);
}

// The disk fills at any moment, also in the middle of a large transaction and of a checkpoint.
TEST_F(DurabilityTest, RecoversFromAFullDiskAtAnyMoment) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  uint32_t steps = 0;
  int full = 0;
  for (int64_t room = 1000; room < 400000; room += 37000) {
    disk.room = room;
    for (int i = 0; i < 4; ++i) {
      std::vector<LeaseEvent> events;
      for (uint32_t k = 0; k < 60; ++k) events.push_back(Point(steps + k));
      const auto applied = store->Apply("i", events);
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
    disk.room = INT64_MAX;
  }
  EXPECT_GT(full, 5);
  EXPECT_GT(steps, 0u);
  EXPECT_TRUE(store->Apply("i", {Point(steps)}).ok());
  EXPECT_TRUE(fatal_.ok()) << fatal_;
}

TEST_F(DurabilityTest, EndsWhenASyncFails) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  ASSERT_TRUE(store->Apply("i", {Point(0)}).ok());
  disk.fail_sync = true;
  EXPECT_EQ(CodeOf(store->Apply("i", {Point(1)})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(fatal_), absl::StatusCode::kDataLoss);
  disk.fail_sync = false;
  // Whether the pages reached the disk is unknown: only a new process may go on.
  EXPECT_EQ(CodeOf(store->Apply("i", {Point(1)})), absl::StatusCode::kDataLoss);
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
  ASSERT_TRUE(store->Apply("i", {Point(0)}).ok());
  disk.fail_sync = true;
  EXPECT_FALSE(store->Maintain().ok());
  EXPECT_EQ(CodeOf(fatal_), absl::StatusCode::kDataLoss);
  disk.fail_sync = false;
}

TEST_F(DurabilityTest, EndsTheProcessByDefault) {
  FailingDisk disk;
  const auto fail = [&] {
    StoreOptions options = Options();
    options.fatal = nullptr;
    auto store = Value(Store::Open(options));
    Begin(store.get());
    disk.fail_sync = true;
    store->Apply("i", {Point(0)}).IgnoreError();
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(EXIT_FAILURE), "cannot be trusted");
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

TEST_F(DurabilityTest, SyncsOnceAGroup) {
  FailingDisk disk;
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  const int before = disk.syncs;
  std::atomic<int> applied = 0;
  constexpr int kRequests = 2000;
  for (uint32_t step = 0; step < kRequests; ++step) {
    store->ApplyAsync("i", {Point(step)}, [&](auto answer) {
      EXPECT_EQ(answer->at(0), Applied::kApplied);
      ++applied;
    });
  }
  EXPECT_EQ(Value(store->Apply("i", {Point(kRequests)}))[0], Applied::kApplied);
  EXPECT_EQ(applied, kRequests);  // in order
  EXPECT_GE(disk.syncs - before, 1);
  EXPECT_LT(disk.syncs - before, kRequests / 4);
  EXPECT_EQ(Count(store.get()), kRequests + 1u);
}

// One bad request in a group must not touch its neighbours.
TEST_F(DurabilityTest, UndoesOnlyTheRequestThatFails) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  std::atomic<int> good = 0, bad = 0;
  for (uint32_t step = 0; step < 300; ++step) {
    const LeaseEvent point = Point(step);
    LeaseEvent invalid = Point(step + 1);
    std::get<PointsEvent>(invalid.event).columns[0].values.clear();
    store->ApplyAsync("i", {point, invalid}, [&](auto answer) { bad += answer.ok() ? 0 : 1; });
    store->ApplyAsync("i", {point}, [&](auto answer) { good += answer.ok() ? 1 : 0; });
  }
  EXPECT_TRUE(store->Apply("i", {Point(300)}).ok());
  EXPECT_EQ(good, 300);
  EXPECT_EQ(bad, 300);
  EXPECT_EQ(Count(store.get()), 301u);
}

TEST_F(DurabilityTest, ReportsChangesAfterTheyAreVisible) {
  StoreOptions options = Options();
  std::atomic<uint64_t> newest = 0;
  options.on_commit = [&](uint64_t change) { newest = change; };
  auto store = Value(Store::Open(options));
  Begin(store.get());
  const uint64_t before = store->change_number();
  ASSERT_TRUE(store->Apply("i", {Point(0)}).ok());
  EXPECT_GT(store->change_number(), before);
  store.reset();  // the call comes after the answer
  EXPECT_GT(newest, before);
}

TEST_F(DurabilityTest, FinishesWhatWasPostedWhenItCloses) {
  int applied = 0;
  {
    auto store = Value(Store::Open(Options()));
    Begin(store.get());
    for (uint32_t step = 0; step < 100; ++step) {
      store->ApplyAsync("i", {Point(step)}, [&](auto answer) { applied += answer.ok() ? 1 : 0; });
    }
  }
  EXPECT_EQ(applied, 100);
  auto store = Value(Store::Open(Options()));
  EXPECT_EQ(Count(store.get()), 100u);
}

TEST_F(DurabilityTest, ReadsAndWritesFromManyThreads) {
  auto store = Value(Store::Open(Options()));
  const std::vector<std::string> runs = {"a", "b", "c", "d"};
  const std::string id = Value(store->CreateExperiment(MakeExperiment(runs))).id;
  std::vector<std::thread> threads;
  for (const std::string& run : runs) {
    threads.emplace_back([&store, run] {
      Lease lease(store.get(), absl::StrCat("lease-", run), {run});
      for (uint32_t step = 0; step < 60; ++step) {
        EXPECT_EQ(lease.Send(run, MakePoints(step, {MakeColumn("x", {step}, {1.0})})),
                  Applied::kApplied);
        EXPECT_EQ(Value(store->Summaries({run}))[0][0].count, step + 1);  // sees its own writes
      }
      EXPECT_EQ(lease.Send(run, FinishedEvent{false, 100}), Applied::kApplied);
    });
  }
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      const auto cells = Value(store->ListCells(id, 0, 10));
      EXPECT_THAT(cells, SizeIs(4));
      for (const CellRecord& cell : cells) {
        store->ReadSeries({cell.run, "x"}, [](const auto&, const auto&) { return true; })
            .IgnoreError();
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(store->Maintain().ok());
  stop = true;
  reader.join();
  EXPECT_EQ(Value(store->GetExperiment(id)).counts.done, 4u);
}

TEST_F(DurabilityTest, EmptiesTheLog) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  EXPECT_GT(std::filesystem::file_size(absl::StrCat(Database(), "-wal")), 0u);
  ASSERT_TRUE(store->Maintain().ok());
  EXPECT_EQ(std::filesystem::file_size(absl::StrCat(Database(), "-wal")), 0u);
  store.reset();
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(Database(), "-wal")));
}

// --- Opening

TEST_F(DurabilityTest, MakesAPrivateFolder) {
  auto store = Value(Store::Open(Options()));
  const auto permissions = std::filesystem::status(Options().folder).permissions();
  EXPECT_EQ(permissions, std::filesystem::perms::owner_all);
  EXPECT_EQ(CodeOf(store->Image()), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DurabilityTest, RefusesASecondServer) {
  auto store = Value(Store::Open(Options()));
  const auto second = Store::Open(Options());
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().message(), HasSubstr("in use by another server"));
  const pid_t child = fork();
  if (child == 0) _exit(Store::Open(Options()).ok() ? 1 : 0);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  store.reset();
  EXPECT_TRUE(Store::Open(Options()).ok());
}

TEST_F(DurabilityTest, RefusesANewerFileAndLeavesItAlone) {
  Value(Store::Open(Options())).reset();
  {
    auto db = Value(Connection::OpenFile(Database(), Connection::Access::kReadWrite));
    db->Execute("PRAGMA user_version = 99; DROP TABLE step_times");
    ASSERT_TRUE(db->error().ok());
  }
  const auto refused = Store::Open(Options());
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("schema version 99"));
  auto db = Value(Connection::OpenFile(Database(), Connection::Access::kReadWrite));
  Statement version(*db, "PRAGMA user_version");
  ASSERT_TRUE(version.Row());
  EXPECT_EQ(version.Int(0), 99);
}

TEST_F(DurabilityTest, RefusesFilesOfOtherPrograms) {
  std::filesystem::create_directories(Options().folder);
  {
    auto db = Value(Connection::OpenFile(Database(), Connection::Access::kReadWrite));
    db->Execute("CREATE TABLE theirs (x)");
  }
  EXPECT_EQ(CodeOf(Store::Open(Options())), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(Options().folder);
  std::filesystem::create_directories(Options().folder);
  std::ofstream(Database()) << std::string(5000, 'x');
  EXPECT_EQ(CodeOf(Store::Open(Options())), absl::StatusCode::kDataLoss);
}

TEST_F(DurabilityTest, RefusesAnImageOnFile) {
  StoreOptions options = Options();
  options.image = "x";
  EXPECT_EQ(CodeOf(Store::Open(options)), absl::StatusCode::kInvalidArgument);
}

TEST(NetworkFileSystemTest, KnowsThem) {
  EXPECT_EQ(NetworkFileSystem(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystem(static_cast<int32_t>(0xff534d42)), "CIFS");  // may come negative
  EXPECT_EQ(NetworkFileSystem(0xef53), "");                                // ext4
  EXPECT_EQ(NetworkFileSystem(0x01021994), "");                            // tmpfs
}

TEST(MigrationsTest, GoForwardStepByStep) {
  auto db = Value(Connection::OpenMemory(""));
  const char* first[] = {"CREATE TABLE t (x) STRICT"};
  const char* valid[] = {"CREATE TABLE t (x INTEGER) STRICT", "ALTER TABLE t ADD COLUMN y INTEGER"};
  const char* broken[] = {valid[0], valid[1], "INSERT INTO t VALUES (1, 2); CREATE TABLE t (x)"};
  const auto version = [&] {
    Statement read(*db, "PRAGMA user_version");
    return read.Row() ? read.Int(0) : -1;
  };
  EXPECT_FALSE(Migrate(*db, first).ok());  // no type: not STRICT
  EXPECT_EQ(version(), 0);
  ASSERT_TRUE(Migrate(*db, absl::MakeConstSpan(valid).subspan(0, 1)).ok());
  EXPECT_EQ(version(), 1);
  EXPECT_FALSE(Migrate(*db, broken).ok());
  EXPECT_EQ(version(), 2);
  EXPECT_FALSE(Statement(*db, "SELECT 1 FROM t").Row());
  ASSERT_TRUE(Migrate(*db, valid).ok());
  EXPECT_EQ(CodeOf(Migrate(*db, absl::MakeConstSpan(valid).subspan(0, 1))),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ablate::storage
