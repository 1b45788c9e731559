// Background maintenance: compaction, removal and sweeping, in small requests between the others.
#ifndef ABLATE_STORAGE_SQLITE_MAINTENANCE_H_
#define ABLATE_STORAGE_SQLITE_MAINTENANCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "storage/blobs.h"
#include "storage/sqlite/database.h"

namespace ablate::storage {

struct MaintenanceOptions {
  std::function<Micros()> now;
  std::function<void(const std::string&)> log;  // may be empty
  bool sweep_leftovers = false;                 // as StoreOptions::sweep_leftovers
  uint64_t last_states_bytes = 0;               // as StoreOptions::last_states_bytes
  DiskRoom* room = nullptr;                     // null in memory
};

// Results of the sweeps of one pass.
struct Sweeps {
  size_t trashed = 0;             // number of blobs moved to the trash
  std::vector<std::string> gone;  // hashes whose rows in loose_blobs aren't needed any more
};

// Runs the maintenance. Thread-safe.
class Maintenance {
 public:
  // The pointers must outlive this object. `blobs` may be null.
  Maintenance(Database* db, Blobs* blobs, MaintenanceOptions options);
  ~Maintenance();
  // Ends the thread after the request in progress.
  void Stop();

  // Starts a thread that works after each Signal, and once a minute. For some minutes it leaves
  // blobs of an earlier process alone, because their workers may be about to name them.
  void StartThread();
  // Wakes the thread. Does nothing without one.
  void Signal();
  // Does all pending work on the caller's thread; waits for a pass in progress.
  absl::Status RunAll();

 private:
  void Loop();
  bool stopping();
  absl::Status Pass(bool list_folder) ABSL_LOCKS_EXCLUDED(pass_);
  void Log(const std::string& line);
  // Makes the ballast of a full disk again, and finds out if there is room for other work.
  absl::Status KeepRoom();
  // Repeats a request until it has nothing to do. `frees`: it makes room.
  absl::Status Repeat(bool frees, const std::function<bool(Transaction&)>& slice);

  // compaction.cc: turns row groups of ended runs into chunks of one key each.
  absl::Status CompactAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);

  // removal.cc Removes deleted data in slices.
  absl::Status RemoveDeleted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  // Sweeps blobs that no row names: those that lost a name, those unpinned since, and, if
  // `list_folder`, once those that a crash left. Then removes old trash.
  absl::Status SweepBlobs(bool list_folder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::Status SweepFolder(bool list, Sweeps* sweeps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::Status SweepLeftovers(Sweeps* sweeps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::Status SweepAll(const std::vector<std::string>& hashes, Sweeps* sweeps)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::StatusOr<std::vector<std::string>> Unnamed(const std::vector<std::string>& hashes);
  absl::Status EmptyTrash() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);

  Database* const db_;
  Blobs* const blobs_;
  const MaintenanceOptions options_;

  Mutex pass_;  // held during a pass
  bool folder_listed_ ABSL_GUARDED_BY(pass_) = false;
  Micros trash_looked_at_ ABSL_GUARDED_BY(pass_) = 0;

  Mutex mutex_;
  CondVar wake_;
  bool signalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_MAINTENANCE_H_
