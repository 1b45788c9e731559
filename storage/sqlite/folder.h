// The data folder: made, checked and locked before anything in it is touched, and the database's
// files in it.
#ifndef ABLATE_STORAGE_SQLITE_FOLDER_H_
#define ABLATE_STORAGE_SQLITE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::storage {

// Holds the folder against other servers until it is destroyed.
class FolderLock {
 public:
  // Creates the folder with mode 0700. FAILED_PRECONDITION if somebody holds it or it is on a
  // network file system, whose locks and shared memory SQLite cannot rely on.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  FolderLock() = default;
  absl::Status Add(const std::string& path, int flags);
  std::vector<int> descriptors_;
};

struct FilePlace {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t links = 0;
  bool operator==(const FilePlace& other) const = default;
};

// The database's file, its log and the log's index, as SQLite has them open: it would write on into
// files that were removed or replaced without a sign. Thread-safe.
class DatabaseFiles {
 public:
  // As they are now; right after the database was opened for its first read.
  static absl::StatusOr<DatabaseFiles> At(const std::string& path);
  // DATA_LOSS if one of them is gone, is another file now, has got a second name or can't be looked
  // at. Takes some microseconds.
  absl::Status Check() const;
  // Whether the database itself is still there.
  bool InPlace() const;
  // Removes log and index if they are still those that were opened: SQLite would apply them to
  // whatever database it finds beside them.
  void RemoveLog() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<FilePlace> places_;
};

// The name of a network file system by statfs's f_type; empty for all others.
absl::string_view NetworkFileSystem(int64_t type);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_FOLDER_H_
