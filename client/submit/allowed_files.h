// Decides which files may be uploaded for a folder that someone else may have made.
#ifndef ABLATE_CLIENT_SUBMIT_ALLOWED_FILES_H_
#define ABLATE_CLIENT_SUBMIT_ALLOWED_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::client {

inline constexpr char kAllowOption[] = "--data";

// Returns PERMISSION_DENIED unless `path` is in `folder`, also by links, and not hidden there, or
// within `allowed`, which has files or folders that --data names. `called` is the folder's name in
// the error. The file need not exist.
absl::Status CheckIsAllowed(const std::string& path, const std::string& folder,
                            absl::string_view called, const std::vector<std::string>& allowed);

// Checks files of a folder that the command line names, in the same way.
absl::Status CheckFilesIn(const std::string& folder, const std::vector<std::string>& names,
                          const std::vector<std::string>& allowed);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_ALLOWED_FILES_H_
