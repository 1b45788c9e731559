// Finds the files of a program that an experiment file names, and packs them for the server.
#ifndef ABLATE_CLIENT_SUBMIT_PROGRAM_FILES_H_
#define ABLATE_CLIENT_SUBMIT_PROGRAM_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::client {

// Packs (base/file_set.h) the files below `folder` that `patterns` names: paths and shell patterns
// divided by commas. A folder stands for the files in it that git tracks or, if git tracks none,
// for all that aren't hidden. `except`, the experiment file, is left out: its changes must not make
// runs new. INVALID_ARGUMENT if a pattern leads out of the folder or names no file, or if there are
// too many files or bytes. PERMISSION_DENIED if a file is unreadable, or hidden or a link that
// leads out of the folder, unless it is within `allowed`. Sets `left_out` to files of named folders
// that git neither tracks nor ignores.
absl::StatusOr<std::string> PackProgramFiles(const std::string& folder, absl::string_view patterns,
                                             const std::string& except,
                                             const std::vector<std::string>& allowed = {},
                                             std::vector<std::string>* left_out = nullptr);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_PROGRAM_FILES_H_
