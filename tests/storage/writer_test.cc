// Tests many requests at once: groups, order, and the effect of a failing one on the others.
#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/storage/failing_disk.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::SizeIs;

class WriterTest : public FileTest {};

TEST_F(WriterTest, SyncsOnceAGroup) {
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
  EXPECT_EQ(Value(ApplyAndWait(*store, "i", {Point(kRequests)}))[0], Applied::kApplied);
  EXPECT_EQ(applied, kRequests);  // in order
  EXPECT_GE(disk.syncs - before, 1);
  EXPECT_LT(disk.syncs - before, kRequests / 4);
  EXPECT_EQ(Count(store.get()), kRequests + 1u);
}

TEST_F(WriterTest, UndoesOnlyTheRequestThatFails) {
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
  EXPECT_TRUE(ApplyAndWait(*store, "i", {Point(300)}).ok());
  EXPECT_EQ(good, 300);
  EXPECT_EQ(bad, 300);
  EXPECT_EQ(Count(store.get()), 301u);
}

TEST_F(WriterTest, ReportsChangesAfterTheyAreVisible) {
  StoreOptions options = Options();
  std::atomic<uint64_t> newest = 0;
  options.on_commit = [&](uint64_t change) { newest = change; };
  auto store = Value(Store::Open(options));
  Begin(store.get());
  const uint64_t before = store->change_number();
  ASSERT_TRUE(ApplyAndWait(*store, "i", {Point(0)}).ok());
  EXPECT_GT(store->change_number(), before);
  store.reset();  // the call comes after the answer
  EXPECT_GT(newest, before);
}

TEST_F(WriterTest, FinishesWhatWasPostedWhenItCloses) {
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

TEST_F(WriterTest, ReadsAndWritesFromManyThreads) {
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
        EXPECT_EQ(Value(store->Summaries({run}))[0].keys[0].count,
                  step + 1);  // sees its own writes
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

TEST_F(WriterTest, EmptiesTheLog) {
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  EXPECT_GT(std::filesystem::file_size(absl::StrCat(Database(), "-wal")), 0u);
  ASSERT_TRUE(store->Maintain().ok());
  EXPECT_EQ(std::filesystem::file_size(absl::StrCat(Database(), "-wal")), 0u);
  store.reset();
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(Database(), "-wal")));
}

// --- Opening

}  // namespace
}  // namespace ablate::storage
