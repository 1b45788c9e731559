// Finds the personal server: its folder, its address (files that it writes and clients read), and
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

// Longest time from the request to end until the server has ended: its workers save the state of
// their runs first.
inline constexpr absl::Duration kEndTimeout = absl::Seconds(60);

using Environment = process::Environment;
using Home = process::HomeFiles;

inline constexpr char kHomeHelp[] =
    "Folder of the server [$ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate]";

// Returns `folder` if it is not empty, otherwise process::DefaultHome; absolute.
// FAILED_PRECONDITION if both are empty.
absl::StatusOr<Home> FindHome(const std::string& folder, const Environment& environment);

// Returns the address of the server of this folder; the address file of a copied or moved folder
// names another. UNAVAILABLE, with the next step, if there is none.
absl::StatusOr<std::string> ReadAddress(const Home& home);

// Returns the server that commands use: $ABLATE_SERVER (an address on this machine, "personal", or
// the name of a login), otherwise the current login, otherwise the personal server.
// INVALID_ARGUMENT if $ABLATE_SERVER is something else: without TLS no other address is safe.
absl::StatusOr<ServerAddress> FindServer(const Environment& environment);

// A running server. Holds a descriptor of the process, so that a reused number can't name another
// process.
class ServerProcess {
 public:
  // Finds the process that the home's pid file names. NOT_FOUND if it has ended, because its number
  // may be another process's, or if the file was copied from another folder.
  static absl::StatusOr<ServerProcess> Find(const Home& home);

  pid_t pid() const { return pid_; }
  // Sends SIGTERM.
  absl::Status Terminate();
  // Returns true if it ended within `timeout`.
  bool WaitForExit(absl::Duration timeout);

 private:
  ServerProcess(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}
  pid_t pid_;
  process::FileDescriptor descriptor_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PERSONAL_SERVER_H_
