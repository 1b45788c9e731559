// The folder of a personal server, and its sockets.
#ifndef ABLATE_SERVER_LAUNCH_HOME_H_
#define ABLATE_SERVER_LAUNCH_HOME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "process/private_folder.h"

namespace ablate::launch {

struct Home : process::HomeFiles {  // `folder` is absolute; folders have mode 0700
  using HomeFiles::HomeFiles;
  // run_folder + "/ablate.sock" and "/worker.sock", or hashed names under XDG_RUNTIME_DIR if over
  // 107 bytes.
  std::string client_socket;
  std::string worker_socket;
};

// The gRPC address of a socket, "unix:PATH": an address is a URI, so that what has a meaning in one
// (%, ?, #, a space, a line's end, bytes beyond ASCII) is written as %XX.
std::string SocketAddress(absl::string_view path);

// Creates the folders. FAILED_PRECONDITION if one exists and is not ours alone (owner, mode).
absl::StatusOr<Home> PrepareHome(const std::string& folder);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_HOME_H_
