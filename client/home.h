// Where a personal server lives and how to reach it: files that the server writes and clients read.
#ifndef ABLATE_CLIENT_HOME_H_
#define ABLATE_CLIENT_HOME_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace ablate::client {

// The value of an environment variable, nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

inline constexpr char kHomeHelp[] =
    "its folder [$ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate]";

struct Home {
  std::string folder;        // absolute
  std::string address_file;  // holds "unix:PATH"
  std::string pid_file;
  std::string log_folder;
  std::string log_file;  // of the server
};

// `folder` if it is not empty, else $ABLATE_HOME, $XDG_DATA_HOME/ablate or ~/.local/share/ablate.
// FAILED_PRECONDITION if none of these says where.
absl::StatusOr<Home> FindHome(const std::string& folder, const Environment& environment);

// The address in the home's file. UNAVAILABLE, with what to do, if there is none.
absl::StatusOr<std::string> ReadAddress(const Home& home);

// $ABLATE_SERVER, else the address of the personal server. INVALID_ARGUMENT if $ABLATE_SERVER is
// neither a unix socket nor on this machine: without TLS nothing else is safe.
absl::StatusOr<std::string> FindServer(const Environment& environment);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_HOME_H_
