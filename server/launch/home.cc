#include "server/launch/home.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/socket_path.h"
#include "base/status_macros.h"

namespace ablate::launch {
namespace {

// Returns a private folder outside `home` for sockets whose path in it would be too long.
absl::StatusOr<std::string> ShortFolder() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  // The variable often names a folder that this machine doesn't have.
  const bool usable = runtime != nullptr && runtime[0] == '/' && access(runtime, F_OK) == 0;
  const std::string folder =
      usable ? absl::StrCat(runtime, "/ablate") : absl::StrCat("/tmp/ablate-", geteuid());
  RETURN_IF_ERROR(process::MakePrivateFolder(folder));
  return folder;
}

absl::StatusOr<std::string> SocketPath(const Home& home, absl::string_view name) {
  if (auto natural = process::SocketInRunFolder(home, name)) return *std::move(natural);
  ASSIGN_OR_RETURN(std::string folder, ShortFolder());
  const std::string path = absl::StrCat(folder, "/", process::SocketNameElsewhere(home, name));
  if (path.size() > process::kMaxSocketPath) {
    return absl::FailedPreconditionError(
        absl::StrCat("socket path ", path, " is ", path.size(), " bytes long, at most ",
                     process::kMaxSocketPath, " are allowed: choose a shorter XDG_RUNTIME_DIR"));
  }
  return path;
}

}  // namespace

absl::StatusOr<Home> PrepareHome(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string real, process::MakePrivateHome(folder));
  Home home(real);
  for (const std::string& part : {home.log_folder, home.run_folder}) {
    if (absl::Status made = process::MakePrivateFolder(part); !made.ok()) return made;
  }
  ASSIGN_OR_RETURN(std::string client, SocketPath(home, process::kClientSocket));
  ASSIGN_OR_RETURN(std::string worker, SocketPath(home, "worker.sock"));
  home.client_socket = std::move(client);
  home.worker_socket = std::move(worker);
  return home;
}

}  // namespace ablate::launch
