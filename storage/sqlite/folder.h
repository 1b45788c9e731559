// The data folder: made, checked and locked before anything in it is touched.
#ifndef ABLATE_STORAGE_SQLITE_FOLDER_H_
#define ABLATE_STORAGE_SQLITE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

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
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

// The name of a network file system by statfs's f_type; empty for all others.
absl::string_view NetworkFileSystem(int64_t type);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_FOLDER_H_
