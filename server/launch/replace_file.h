// Files that others read while they are written.
#ifndef ABLATE_SERVER_LAUNCH_REPLACE_FILE_H_
#define ABLATE_SERVER_LAUNCH_REPLACE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::launch {

// Replaces the file by rename: readers see the old content or the new one, never a part.
absl::Status ReplaceFile(const std::string& file, absl::string_view content);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_REPLACE_FILE_H_
