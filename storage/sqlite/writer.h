// The one place that writes: groups requests into transactions, a savepoint each, one fsync a
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
#include "base/mutex.h"
#include "storage/disk_room.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

// What a request may use while it runs.
struct Transaction {
  Connection& db;
  Micros now = 0;
  // Last change number given out. They order everything that happens to runs.
  uint64_t change = 0;
  bool needs_maintenance = false;  // it left work for Maintenance
  // Called on the writer's thread once this is durable, before any later request begins.
  std::vector<std::function<void()>> after_commit = {};

  uint64_t NextChange() { return ++change; }
};

struct WriterOptions {
  // Of the database, for messages. Empty in memory, where requests run
  // on the caller's thread, one a transaction.
  std::string path;
  DiskRoom* room = nullptr;  // null in memory
  std::function<Micros()> now;
  // After each commit, with the newest change number; from the thread that commits.
  std::function<void(uint64_t)> on_commit;
  // After a commit that left work for Maintenance; from the thread that commits.
  std::function<void()> on_maintenance_needed;
  // The disk is full: whatever can make room for the next try. From the thread that commits.
  std::function<void()> on_full;
  // The disk failed or the file is corrupt. Does not return, except in tests.
  std::function<void(const absl::Status&)> fatal;
};

// Thread-safe.
class Writer {
 public:
  // Does not throw away what it did when it fails: the writer does. Its results may be used only
  // after the commit.
  using Work = std::function<absl::Status(Transaction&)>;
  using Done = std::function<void(const absl::Status&)>;

  // `db` has the newest schema.
  Writer(std::unique_ptr<Connection> db, WriterOptions options);
  ~Writer();
  // Finishes what was posted and ends the thread. Nothing may be posted afterwards.
  void Stop();

  // `done` is called after the commit, on the thread that commits, with what the work returned or
  // why it is undone. It must not block.
  void Post(Work work, Done done);
  // The same, waiting. Not from a callback.
  absl::Status Run(const Work& work);
  // The same for work that makes room in the end: a full disk's ballast is for it.
  absl::Status Free(const Work& work);

  // Runs `read` between two transactions on the writer's own connection: for stores in memory,
  // which have no other.
  absl::Status Read(const std::function<absl::Status(Connection&)>& read);
  // Empties the log into the file.
  absl::Status Checkpoint();

  // As of the last commit.
  uint64_t change_number() const { return change_number_; }

 private:
  bool in_memory() const { return options_.path.empty(); }

  struct Request {
    Work work;
    Done done;
    bool frees = false;  // it makes room
    absl::Status status{};
  };
  using Group = std::vector<Request>;

  void Enqueue(Request request);
  absl::Status RunRequest(const Work& work, bool frees);
  // Tells what became of a group, in which rows were changed or not.
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
  void KeepLogShort() ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // Makes room on a full disk; the first DATA_LOSS ends all.
  void NoteFailure(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);

  const WriterOptions options_;
  std::atomic<uint64_t> change_number_ = 0;

  Mutex db_mutex_;
  const std::unique_ptr<Connection> db_ ABSL_PT_GUARDED_BY(db_mutex_);
  uint64_t stored_change_ ABSL_GUARDED_BY(db_mutex_) = 0;
  absl::Status dead_ ABSL_GUARDED_BY(db_mutex_);

  Mutex mutex_;
  CondVar wake_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_WRITER_H_
