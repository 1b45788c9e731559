// The personal server: where it lives, how to reach it (files that it writes and clients read), and
// its process. Not thread-safe.
#ifndef ABLATE_CLIENT_PERSONAL_SERVER_H_
#define ABLATE_CLIENT_PERSONAL_SERVER_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/private_folder.h"
#include "client/connection.h"

namespace ablate::client {

// Within which a server that was told to end has ended: its workers save the state of their runs
// first.
inline constexpr absl::Duration kEndTimeout = absl::Seconds(60);

using Environment = process::Environment;
using Home = process::HomeFiles;

inline constexpr char kHomeHelp[] =
    "Folder of the server [$ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate]";

// `folder` if it is not empty, else process::DefaultHome; absolute. FAILED_PRECONDITION if none of
// these says where.
absl::StatusOr<Home> FindHome(const std::string& folder, const Environment& environment);

// Returns the address of the server that serves this very folder: the address file of a copied or
// moved folder names another. UNAVAILABLE, with what to do, if there is none.
absl::StatusOr<std::string> ReadAddress(const Home& home);

// The server that commands talk to: $ABLATE_SERVER (an address on this machine, "personal", or the
// name of a login), else the current login, else the personal server. INVALID_ARGUMENT if
// $ABLATE_SERVER is none of these: without TLS no other address is safe.
absl::StatusOr<ServerAddress> FindServer(const Environment& environment);

// A running server: a descriptor of the process, so that a number used anew is never mistaken
// for it.
class ServerProcess {
 public:
  // Finds the process that the home's pid file names. NOT_FOUND if it has ended, for its number may
  // have become another's, or if the file was copied from another folder.
  static absl::StatusOr<ServerProcess> Find(const Home& home);

  pid_t pid() const { return pid_; }
  // Sends SIGTERM.
  absl::Status Terminate();
  // Whether it ended within `timeout`.
  bool WaitForExit(absl::Duration timeout);

 private:
  ServerProcess(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}
  pid_t pid_;
  process::FileDescriptor descriptor_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PERSONAL_SERVER_H_
