// Locates and creates the folder of a personal server and its sockets.
#ifndef ABLATE_SERVER_LAUNCH_HOME_H_
#define ABLATE_SERVER_LAUNCH_HOME_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/private_folder.h"

namespace ablate::launch {

// The files of a personal server.
struct Home : process::HomeFiles {  // `folder` is absolute; folders have mode 0700
  using HomeFiles::HomeFiles;
  // run_folder + "/ablate.sock" and "/worker.sock", or hashed names under XDG_RUNTIME_DIR if those
  // exceed 107 bytes.
  std::string client_socket;
  std::string worker_socket;
};

// Creates the folders. Returns FAILED_PRECONDITION if one exists with another owner or mode.
absl::StatusOr<Home> PrepareHome(const std::string& folder);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_HOME_H_
