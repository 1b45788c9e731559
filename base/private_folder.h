// Folders that are one user's alone, and the one of a personal server: which it is, and what its
// files are called.
#ifndef ABLATE_PROCESS_PRIVATE_FOLDER_H_
#define ABLATE_PROCESS_PRIVATE_FOLDER_H_

#include <functional>
#include <optional>
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

// The value of an environment variable, nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
// This process's. Not while another thread sets variables.
std::optional<std::string> EnvironmentVariable(const char* name);

// $ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate; empty if the environment names
// none.
std::string DefaultHome(const Environment& environment);

// Where the server of a home and its clients find each other. Its database and blobs are the
// store's.
struct HomeFiles {
  explicit HomeFiles(const std::string& home);
  std::string folder;
  std::string run_folder;  // sockets, and what says which processes there are
  std::string log_folder;
  std::string address_file;  // holds the server's address, "unix:PATH", while it serves; a copy
                             // of the folder has it, too
  std::string pid_file;      // of the server
  std::string log_file;      // of the server
};

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_PRIVATE_FOLDER_H_
