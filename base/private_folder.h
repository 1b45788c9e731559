// Folders that only one user may enter, and the layout of a personal server's home.
#ifndef ABLATE_BASE_PRIVATE_FOLDER_H_
#define ABLATE_BASE_PRIVATE_FOLDER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ablate::process {

// Returns OK if `folder` is a folder (not a link to one) of this user with mode 0700; otherwise
// FAILED_PRECONDITION.
absl::Status CheckPrivateFolder(const std::string& folder);

// Creates a folder that only its owner can enter. Checks an existing one and never changes it.
absl::Status MakePrivateFolder(const std::string& folder);

// Creates a private folder and its ancestors, and returns its path with all links resolved, so that
// equal folders have equal paths. INVALID_ARGUMENT if the name is empty.
absl::StatusOr<std::string> MakePrivateHome(const std::string& folder);

// Returns the value of an environment variable; nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
// Reads this process's environment. Don't call it while another thread sets variables.
std::optional<std::string> EnvironmentVariable(const char* name);

// Returns $ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate; empty if the environment
// names none.
std::string DefaultHome(const Environment& environment);

// Paths by which the server of a home and its clients find each other. The store owns the database
// and the blobs.
struct HomeFiles {
  explicit HomeFiles(const std::string& home);
  std::string folder;
  std::string run_folder;  // sockets, and files that name the processes
  std::string log_folder;
  std::string address_file;  // holds the server's address, "unix:PATH", while it serves; a copy
                             // of the folder has it, too
  std::string pid_file;      // the server's
  std::string log_file;      // the server's
};

}  // namespace ablate::process

#endif  // ABLATE_BASE_PRIVATE_FOLDER_H_
