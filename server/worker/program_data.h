// Keeps the data sets of programs as folders, each once for all runs that read it.
#ifndef ABLATE_SERVER_WORKER_PROGRAM_DATA_H_
#define ABLATE_SERVER_WORKER_PROGRAM_DATA_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/shared_bytes.h"

namespace ablate::worker {

// Unpacks file sets into folders of one folder. If folders that no run reads have more than
// `most_bytes` together when a set is opened, those that were used longest ago are removed.
// Thread-safe; threads that need the same data set wait while one of them unpacks it.
class ProgramData {
 public:
  // A data set; its folder is kept as long as this lives.
  class Set;
  using Read = std::function<absl::StatusOr<SharedBytes>()>;

  // `folder` must exist and be empty.
  ProgramData(std::string folder, uint64_t most_bytes)
      : root_(std::move(folder)), most_bytes_(most_bytes) {}

  // Returns the data set with this hash. Unpacks what `read` returns if there is none. Errors as of
  // `read` and UnpackFiles.
  absl::StatusOr<std::shared_ptr<const Set>> Open(const std::string& sha256, const Read& read)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Has the data sets' folders.
  const std::string& root() const { return root_; }

 private:
  std::shared_ptr<Set> Find(const std::string& sha256) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveUnused() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string root_;
  const uint64_t most_bytes_;
  Mutex mutex_;
  std::list<std::shared_ptr<Set>> recent_ ABSL_GUARDED_BY(mutex_);  // newest first
};

class ProgramData::Set {
 public:
  explicit Set(std::string folder) : folder_(std::move(folder)) {}
  // Removes the folder.
  ~Set();
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

  const std::string& folder() const { return folder_; }

 private:
  friend class ProgramData;

  absl::Status Unpack(const Read& read) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string folder_;
  mutable Mutex mutex_;
  bool unpacked_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Makes every file of a data set's folder appear in `folder`, by symbolic links to the same path
// below `seen`, which is the data set's folder for the program. Files that are there stay.
absl::Status LinkData(const std::string& set, const std::string& seen, const std::string& folder);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_PROGRAM_DATA_H_
