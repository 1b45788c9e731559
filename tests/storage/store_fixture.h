// Fixture of the store's tests: a store on file or in memory, with short helpers.
#ifndef ABLATE_TESTS_STORAGE_STORE_FIXTURE_H_
#define ABLATE_TESTS_STORAGE_STORE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "storage/store.h"
#include "tests/storage/waiting.h"
#include "tests/test_folder.h"

namespace ablate::storage {

// Returns the value; on an error fails the test and returns a default.
template <typename T>
T Value(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : T();
}
inline absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }
template <typename T>
absl::StatusCode CodeOf(const absl::StatusOr<T>& result) {
  return result.status().code();
}

// Publishes bytes in a store on file. They may be removed once the pin is, unless a row names them.
std::shared_ptr<Blobs::Pin> PublishIn(Blobs* blobs, const std::string& bytes);
// Runs statements in a database that no store has open.
void Alter(const std::string& database, const std::string& sql);
// Returns a worker with an environment of its own.
LeaseHolder HolderIn(const std::string& environment, uint32_t numerics_version = 0);

inline constexpr uint32_t kSteps = 100;      // of a run, unless a test sets others
inline constexpr uint32_t kMostOpen = 1000;  // analyses
NewRun MakeRun(const std::string& fingerprint, uint32_t steps = kSteps);
// Returns an experiment with one cell and run per fingerprint; cells are named c0, c1, …
NewExperiment MakeExperiment(const std::vector<std::string>& fingerprints, uint32_t steps = kSteps);
Column MakeColumn(const std::string& key, const std::vector<uint32_t>& steps,
                  const std::vector<double>& values);
// Returns an event that ends at `step`, or at the last step of the columns if that is later.
PointsEvent MakePoints(uint32_t step, std::vector<Column> columns);
// Returns train/loss of each step from `from` to before `to`.
PointsEvent MakeLosses(uint32_t from, uint32_t to);

// A worker's side of leases over some runs, one each: numbers their events. The first lease has the
// name, others have their run's appended.
class Lease {
 public:
  Lease(Store* store, std::string name, const std::vector<std::string>& runs,
        std::string worker = "cpu-train", std::string incarnation = "i1");
  Lease(Store* store, std::string name, const std::vector<std::string>& runs,
        const LeaseHolder& holder);

  // Returns the leases that were made.
  const std::vector<GrantedRun>& granted() const { return granted_; }
  const std::string& name() const { return name_; }
  const std::string& NameOf(const std::string& run) const { return runs_.at(run).lease; }
  // Returns the number of events over all of them.
  uint64_t sent() const { return sent_; }

  // Returns the next event about a run.
  template <typename Kind>
  LeaseEvent Next(const std::string& run, Kind kind) {
    ++sent_;
    return {NameOf(run), ++runs_[run].sent, std::move(kind)};
  }
  // Sends it; returns the result.
  template <typename Kind>
  Applied Send(const std::string& run, Kind kind) {
    return Send(Next(run, std::move(kind)));
  }
  Applied Send(const LeaseEvent& event);

 private:
  struct OfRun {
    std::string lease;
    uint64_t sent = 0;
  };
  Store* store_;
  std::string name_;
  std::string incarnation_;
  std::vector<GrantedRun> granted_;
  std::map<std::string, OfRun> runs_;
  uint64_t sent_ = 0;
};

enum class Where { kFile, kMemory };

// Runs every test of the store on file and in memory.
class StoreTest : public ::testing::TestWithParam<Where> {
 protected:
  StoreTest();

  Store& store() { return *store_; }
  bool on_file() const { return GetParam() == Where::kFile; }
  const std::string& folder() const { return folder_.path(); }
  // Closes the store and opens it again (in memory: a copy).
  void Reopen();
  // Takes effect at the next Reopen.
  void KeepLastStates(uint64_t bytes) { last_states_bytes_ = bytes; }
  // On file only, until Reopen.
  void Close() { store_.reset(); }
  // Returns the store's log messages.
  std::vector<std::string> Logged() {
    MutexLock lock(&log_mutex_);
    return log_;
  }
  void Advance(Micros by) { now_ += by; }
  Micros now() const { return now_; }

  // Publishes a blob, if there are blobs, and keeps it pinned. Returns its hash.
  std::string Publish(const std::string& bytes);
  void Unpin() { pins_.clear(); }
  // Unpins and removes blobs that nothing names.
  void UnpinAndSweep() {
    Unpin();
    ASSERT_TRUE(store().Maintain().ok());
  }
  // Return events about blobs that are published.
  ResumeStateEvent Resume(uint32_t step);
  CheckpointEvent Checkpoint(uint32_t step);
  bool BlobExists(const std::string& sha256);
  bool IsInTrash(const std::string& sha256) { return BlobExists("trash/" + sha256); }

  CreatedExperiment Create(const NewExperiment& experiment);
  CreatedExperiment Submit(const std::vector<std::string>& fingerprints, uint32_t steps = kSteps) {
    return Create(MakeExperiment(fingerprints, steps));
  }
  // Grants and finishes runs.
  void Train(const std::vector<std::string>& runs, bool diverged = false);
  RunRecord Run(const std::string& id) { return Value(store().GetRun(id)); }
  RunState StateOf(const std::string& id) { return Run(id).state; }
  std::vector<std::string> History(const std::string& run);
  // Returns the message of the last event of a kind; empty if there is none.
  std::string LastMessage(const std::string& run, const std::string& kind);
  // Returns all points of a series, by step.
  std::vector<std::pair<uint32_t, double>> Series(const std::string& run, const std::string& key,
                                                  uint32_t first = 0, uint32_t last = UINT32_MAX);
  // Expects that an experiment's counts and state match its cells.
  void ExpectConsistent(const std::string& experiment);

 private:
  StoreOptions Options();

  TestFolder folder_;
  std::atomic<Micros> now_ = 1'700'000'000'000'000;  // the background reads it, too
  uint64_t leases_ = 0;
  uint64_t last_states_bytes_ = kLastStatesBytes;
  Mutex log_mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(log_mutex_);
  std::vector<std::shared_ptr<Blobs::Pin>> pins_;
  std::unique_ptr<Store> store_;
};

// Uses a store on file, with one run whose points are counted.
class FileTest : public ::testing::Test {
 protected:
  StoreOptions Options() {
    StoreOptions options;
    options.folder = absl::StrCat(folder_.path(), "/data");
    options.fatal = [this](const absl::Status& why) { fatal_ = why; };
    return options;
  }
  std::string Database() { return absl::StrCat(Options().folder, "/ablate.db"); }
  // Returns one point of run "a".
  static LeaseEvent Point(uint32_t step) {
    return {"l", step + 1, MakePoints(0, {MakeColumn("x", {step}, {step * 0.5})})};
  }
  static void Begin(Store* store) {
    ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"a"}, 10'000'000)).ok());
    ASSERT_TRUE(GrantAndWait(*store, {{"l", {"w", "i", "d", "b", "t", "e", 0}, "a"}}).ok());
  }
  // Counts the steps of run "a"; each must have the value it was sent with.
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

  TestFolder folder_;
  absl::Status fatal_;
};

std::string WhereName(const ::testing::TestParamInfo<Where>& info);

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_STORE_FIXTURE_H_
