// Read-only connections, handed out to one thread at a time.
#ifndef ABLATE_STORAGE_SQLITE_READERS_H_
#define ABLATE_STORAGE_SQLITE_READERS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "storage/sqlite/connection.h"
#include "sync/mutex.h"

namespace ablate::storage {

// Thread-safe.
class Readers {
 public:
  // `fatal` is called when the file turns out to be corrupt; it does not return, except in tests.
  Readers(std::string path, std::function<void(const absl::Status&)> fatal);

  // `check` ends the process if the file is not in its place any more. It is called before the file
  // is opened by its name, and before `fatal`: what was removed may still be saved elsewhere. Set
  // before the first read.
  void CheckWith(std::function<void()> check) { check_ = std::move(check); }

  // Runs `read` in a transaction of its own, which sees every commit that was answered. Keep it
  // short: an open one keeps the log from being emptied.
  absl::Status Read(const std::function<absl::Status(Connection&)>& read);

 private:
  absl::StatusOr<std::unique_ptr<Connection>> Take();
  void GiveBack(std::unique_ptr<Connection> connection);

  const std::string path_;
  const std::function<void(const absl::Status&)> fatal_;
  std::function<void()> check_ = [] {};
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
  int in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_READERS_H_
