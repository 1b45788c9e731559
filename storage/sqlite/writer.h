// The only writer: groups requests into transactions, with a savepoint each and one fsync per
// group.
#ifndef ABLATE_STORAGE_SQLITE_WRITER_H_
#define ABLATE_STORAGE_SQLITE_WRITER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "storage/disk_room.h"
#include "storage/lease_store.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// Resources of a request while it runs.
struct Transaction {
  Connection& db;
  Micros now = 0;
  // Last change number given out. They order everything that happens to runs.
  uint64_t change = 0;
  bool needs_maintenance = false;  // a request left work for Maintenance
  // Called on the writer's thread once this is durable, before any later request begins.
  std::vector<std::function<void()>> after_commit = {};
  // Leases that a request ended although it wasn't about them.
  std::vector<Withdrawal> withdrawals = {};
  // Numbers for WriteCounts.
  uint64_t points = 0, losses = 0;

  uint64_t NextChange() { return ++change; }
};

struct WriterOptions {
  // The database's path, for messages. Empty in memory; requests then run on the caller's thread,
  // one per transaction.
  std::string path;
  DiskRoom* room = nullptr;  // null in memory
  std::function<Micros()> now;
  // Called after each commit with the newest change number, on the committing thread.
  std::function<void(uint64_t)> on_commit;
  // Called after a commit that left work for Maintenance, on the committing thread.
  std::function<void()> on_maintenance_needed;
  // Called if the disk is full, to make room for the next attempt, on the committing thread.
  std::function<void()> on_full;
  // Called if the disk failed or the file is corrupt. Must not return, except in tests.
  std::function<void(const absl::Status&)> fatal;
};

// Serializes all writes. Thread-safe.
class Writer {
 public:
  // A request. On failure the writer rolls it back. Its results may be used only after the commit.
  using Work = std::function<absl::Status(Transaction&)>;
  using Done = std::function<void(const absl::Status&)>;

  // `db` has the newest schema.
  Writer(std::unique_ptr<Connection> db, WriterOptions options);
  ~Writer();
  // Finishes the posted requests and ends the thread. Post nothing afterwards.
  void Stop();

  // Posts a request. Calls `done` after the commit, on the committing thread, with the work's
  // result or the reason for its rollback. `done` must not block.
  void Post(Work work, Done done);
  // Posts a request and waits for it. Don't call it from a callback.
  absl::Status Run(const Work& work);
  // Like Run, for work that eventually frees room; it may use the ballast of a full disk.
  absl::Status Free(const Work& work);

  // As in LeaseStore.
  void OnWithdrawn(OnWithdrawnFunction on_withdrawn);

  // Runs `read` between two transactions on the writer's own connection; for stores in memory,
  // which have no other.
  absl::Status Read(const std::function<absl::Status(Connection&)>& read);
  // Copies the log into the file and empties it.
  absl::Status Checkpoint();

  // Returns what happened since the start.
  WriteCounts counts() const;
  // Returns the change number of the last commit.
  uint64_t change_number() const { return change_number_; }

 private:
  bool in_memory() const { return options_.path.empty(); }

  struct Request {
    Work work;
    Done done;
    bool frees = false;  // its work makes room
    absl::Status status{};
  };
  using Group = std::vector<Request>;

  void Enqueue(Request request);
  absl::Status RunRequest(const Work& work, bool frees);
  // Records the outcome of a group; `changed` says if rows were changed.
  void NoteRoom(const Group& group, bool changed);
  void Loop();
  Group NextGroup() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve(Group group);
  void Commit(Group* group, Transaction* transaction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  absl::Status RoomToStore();
  absl::Status RunRequests(Group* group, Transaction* transaction)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  absl::Status CheckPlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  absl::Status RunOne(const Work& work, bool alone, Transaction* transaction)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // Adds a commit that took so long.
  void CountCommit(const Transaction& transaction, absl::Duration time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  void KeepLogShort() ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // Handles an error: makes room on a full disk; ends everything at the first DATA_LOSS.
  void NoteFailure(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);

  const WriterOptions options_;
  std::atomic<uint64_t> change_number_ = 0;

  Mutex db_mutex_;
  const std::unique_ptr<Connection> db_ ABSL_PT_GUARDED_BY(db_mutex_);
  uint64_t stored_change_ ABSL_GUARDED_BY(db_mutex_) = 0;
  absl::Status dead_ ABSL_GUARDED_BY(db_mutex_);
  OnWithdrawnFunction on_withdrawn_ ABSL_GUARDED_BY(db_mutex_);

  Mutex mutex_;
  mutable Mutex counts_mutex_;
  WriteCounts counts_ ABSL_GUARDED_BY(counts_mutex_);
  CondVar wake_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_WRITER_H_
