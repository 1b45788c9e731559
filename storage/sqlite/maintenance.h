// The background: compaction, removal, sweeping, in small requests between the others.
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

// What the sweeps of a pass did.
struct Sweeps {
  size_t trashed = 0;             // blobs that went into the trash
  std::vector<std::string> gone;  // whose rows in loose_blobs are of no more use
};

// Thread-safe.
class Maintenance {
 public:
  // All outlive this. `blobs` may be null.
  Maintenance(Database* db, Blobs* blobs, MaintenanceOptions options);
  ~Maintenance();
  // Ends the thread after the request in progress.
  void Stop();

  // Begins to work whenever Signal is called, and once a minute. It leaves blobs of an earlier
  // process alone for some minutes: their workers may be about to name them.
  void StartThread();
  // There is something to do. Does nothing without a thread.
  void Signal();
  // Does all there is to do, on the caller's thread; waits for one who is at it.
  absl::Status RunAll();

 private:
  void Loop();
  bool stopping();
  absl::Status Pass(bool list_folder) ABSL_LOCKS_EXCLUDED(pass_);
  void Log(const std::string& line);
  // Takes the ballast of a full disk again, and finds out whether there is room for other work.
  absl::Status KeepRoom();
  // Repeats a request until it has nothing to do; `frees`: it makes room.
  absl::Status Repeat(bool frees, const std::function<bool(Transaction&)>& slice);

  // compaction.cc: row groups of ended runs become chunks, one key each.
  absl::Status CompactAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);

  // removal.cc
  // Removes what was deleted, in slices.
  absl::Status RemoveDeleted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  // Sweeps blobs that no row names: those that lost a name, those that were let go since, and, if
  // `list_folder`, those that a crash left, once. Then what was in the trash for long goes.
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

  Mutex pass_;  // held by whoever is at work
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
