// Folders that are one user's alone.
#ifndef ABLATE_PROCESS_PRIVATE_FOLDER_H_
#define ABLATE_PROCESS_PRIVATE_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ablate::process {

// FAILED_PRECONDITION unless `folder` is a folder, no link to one, of this user and of mode 0700.
absl::Status CheckPrivateFolder(const std::string& folder);

// Makes a folder that only its owner can enter. One that exists is checked and never changed.
absl::Status MakePrivateFolder(const std::string& folder);

// Makes a private folder and those above it, and returns its path with all links followed, so that
// two spellings of one folder are one. INVALID_ARGUMENT if the name is empty.
absl::StatusOr<std::string> MakePrivateHome(const std::string& folder);

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_PRIVATE_FOLDER_H_
