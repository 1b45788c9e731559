// Files that hold secrets: they are read and written by their owner alone.
#ifndef ABLATE_PROCESS_PRIVATE_FILE_H_
#define ABLATE_PROCESS_PRIVATE_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

enum class Readers { kOwner, kAll };

// A regular file's bytes. NOT_FOUND if there is none; FAILED_PRECONDITION, with what is wrong, if
// it is none, has more than `max_bytes`, or is for kOwner and its mode lets others read or write
// it.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& file, size_t max_bytes,
                                            Readers readers);

// Makes a file of mode 0600 (kOwner), or of 0644 less the umask, that is on disk when this returns.
// ALREADY_EXISTS if something has the name. What could not be written whole is removed; a crash may
// leave a part, and the name's own place on disk is for SyncFolder.
absl::Status CreateFile(const std::string& file, absl::string_view content, Readers readers);

// Waits until names in the folder are on disk as they are now.
absl::Status SyncFolder(const std::string& folder);

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_PRIVATE_FILE_H_
