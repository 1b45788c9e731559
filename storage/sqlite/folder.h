// The data folder: made, checked and locked before anything in it is touched.
#ifndef ABLATE_STORAGE_SQLITE_FOLDER_H_
#define ABLATE_STORAGE_SQLITE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::storage {

// Creates the folder with mode 0700 and holds it against other servers until the descriptor is
// closed. FAILED_PRECONDITION if somebody holds it or it is on a network file system, whose locks
// and shared memory SQLite cannot rely on.
absl::StatusOr<process::FileDescriptor> LockFolder(const std::string& folder);

// The name of a network file system by statfs's f_type; empty for all others.
absl::string_view NetworkFileSystem(int64_t type);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_FOLDER_H_
