// The background: compaction, removal, sweeping, in small requests between the others.
#ifndef ABLATE_STORAGE_SQLITE_MAINTENANCE_H_
#define ABLATE_STORAGE_SQLITE_MAINTENANCE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/blobs.h"
#include "storage/sqlite/writer.h"
#include "sync/mutex.h"

namespace ablate::storage {

struct MaintenanceOptions {
  std::function<Micros()> now;
  std::function<void(const std::string&)> log;  // may be empty
  bool sweep_most = false;                      // as StoreOptions::sweep_leftovers
  DiskRoom* room = nullptr;                     // null in memory
};

// Thread-safe.
class Maintenance {
 public:
  using Reader = std::function<absl::Status(const std::function<absl::Status(Connection&)>& read)>;

  // All outlive this. `blobs` may be null.
  Maintenance(Writer* writer, Reader reader, Blobs* blobs, MaintenanceOptions options);
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
  absl::Status CompactAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::Status Pass(bool list_folder) ABSL_LOCKS_EXCLUDED(pass_);
  absl::Status SweepFolder(bool list, size_t* trashed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::Status SweepLeftovers(size_t* trashed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::Status SweepAll(const std::vector<std::string>& hashes, size_t* trashed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  absl::StatusOr<std::vector<std::string>> Unnamed(const std::vector<std::string>& hashes);
  absl::Status EmptyTrash() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pass_);
  void Log(const std::string& line);
  // Takes the ballast of a full disk again, and finds out whether there is room for other work.
  absl::Status KeepRoom();
  // Repeats a request until it has nothing to do; `frees`: it makes room.
  absl::Status Repeat(bool frees, const std::function<bool(Transaction&)>& slice);

  Writer* const writer_;
  const Reader reader_;
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
