// Creates, checks and locks the data folder before anything in it is used.
#ifndef ABLATE_STORAGE_SQLITE_FOLDER_H_
#define ABLATE_STORAGE_SQLITE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::storage {

// Creates the folder with mode 0700 and locks it against other servers until the descriptor is
// closed. FAILED_PRECONDITION if it is locked already or on a network file system, on whose locks
// and shared memory SQLite can't rely.
absl::StatusOr<process::FileDescriptor> LockFolder(const std::string& folder);

// Returns the name of a network file system by statfs's f_type; empty for all others.
absl::string_view NetworkFileSystem(int64_t type);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_FOLDER_H_
