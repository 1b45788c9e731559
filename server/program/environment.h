// Describes the Python environments that programs run in.
#ifndef ABLATE_SERVER_PROGRAM_ENVIRONMENT_H_
#define ABLATE_SERVER_PROGRAM_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ablate::program {

struct Environment {
  std::string name;
  std::string interpreter;  // absolute path; empty: only the system's programs
  bool is_virtual = false;  // its bin folder has python and python3, and needs its own path
  std::vector<std::string> folders;  // readable in the sandbox at their own paths
  std::string version;               // such as "Python 3.11.7, torch 2.13.0, 5f3a9c01"
};

// Runs the interpreter `python`, an absolute path, once, and returns its folders and its version.
// The version ends with 8 hex digits of a hash over the interpreter's version, the platform and all
// installed distributions with their versions. Imports none of them. INVALID_ARGUMENT if `python`
// isn't a Python 3 interpreter; FAILED_PRECONDITION, naming a folder, if a folder can't be entered.
// Programs can read the folders `data`, absolute paths, too; the version then ends with 8 more
// digits of a hash over their files' paths, sizes and times of change.
absl::StatusOr<Environment> DescribePython(const std::string& name, const std::string& python,
                                           const std::vector<std::string>& data = {});

// Returns an error that names the first folder on the way to `path` that this user can't enter, or
// `path` itself if it doesn't exist.
absl::Status CheckReachable(const std::string& path);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_ENVIRONMENT_H_
