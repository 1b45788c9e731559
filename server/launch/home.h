// The folder of a personal server: ablate.db, blobs/, log/, run/ with its sockets.
#ifndef ABLATE_SERVER_LAUNCH_HOME_H_
#define ABLATE_SERVER_LAUNCH_HOME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::launch {

struct Home {
  std::string folder;         // absolute; mode 0700
  std::string log;            // folder + "/log"
  std::string run;            // folder + "/run"
  std::string client_socket;  // run + "/ablate.sock", or a hashed name under XDG_RUNTIME_DIR if
                              // over 107 bytes
  std::string worker_socket;  // run + "/worker.sock", likewise
  std::string address_file;   // run + "/address": where clients read "unix:PATH"
  std::string pid_file;       // run + "/ablated.pid"
};

// The gRPC address of a socket, "unix:PATH": an address is a URI, so that what has a meaning in one
// (%, ?, #, a space, a line's end, bytes beyond ASCII) is written as %XX.
std::string SocketAddress(absl::string_view path);

// Creates the folders. FAILED_PRECONDITION if one exists and is not ours alone (owner, mode).
absl::StatusOr<Home> PrepareHome(const std::string& folder);

}  // namespace ablate::launch

#endif  // ABLATE_SERVER_LAUNCH_HOME_H_
