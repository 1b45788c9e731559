// Reads and writes files that hold secrets, which only their owner may read.
#ifndef ABLATE_BASE_PRIVATE_FILE_H_
#define ABLATE_BASE_PRIVATE_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

enum class Readers { kOwner, kAll };

// Returns the bytes of a regular file. NOT_FOUND if there is none. FAILED_PRECONDITION, with the
// problem, if it isn't a regular file, has more than `max_bytes`, or, for kOwner, if its mode lets
// others read or write it.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& file, size_t max_bytes,
                                            Readers readers);

// Creates a file with mode 0600 (kOwner), or 0644 less the umask, that is on disk when this
// returns. ALREADY_EXISTS if the name is taken. Removes a file that could not be written whole; a
// crash may leave a part. Call SyncFolder to make the name itself durable.
absl::Status CreateFile(const std::string& file, absl::string_view content, Readers readers);

// Waits until the names in the folder are on disk as they are now.
absl::Status SyncFolder(const std::string& folder);

}  // namespace ablate::process

#endif  // ABLATE_BASE_PRIVATE_FILE_H_
