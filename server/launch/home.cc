#include "server/launch/home.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace ablate::launch {
namespace {

constexpr size_t kMaxSocketPath = 107;  // sockaddr_un's 108 bytes hold a terminating zero

// FNV-1a: the same folder gives the same socket after every restart.
uint64_t Hash(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// A private folder outside `home` for sockets whose path there would be too long.
absl::StatusOr<std::string> ShortFolder() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  // It is often set to a folder that this machine does not have.
  const bool usable = runtime != nullptr && runtime[0] == '/' && access(runtime, F_OK) == 0;
  const std::string folder =
      usable ? absl::StrCat(runtime, "/ablate") : absl::StrCat("/tmp/ablate-", geteuid());
  absl::Status made = process::MakePrivateFolder(folder);
  if (!made.ok()) return made;
  return folder;
}

absl::StatusOr<std::string> SocketPath(const Home& home, absl::string_view name) {
  const std::string natural = absl::StrCat(home.run_folder, "/", name);
  if (natural.size() <= kMaxSocketPath) return natural;
  absl::StatusOr<std::string> folder = ShortFolder();
  if (!folder.ok()) return folder.status();
  const std::string path = absl::StrFormat("%s/%016x-%s", *folder, Hash(home.folder), name);
  if (path.size() > kMaxSocketPath) {
    return absl::FailedPreconditionError(
        absl::StrCat("socket path ", path, " is ", path.size(), " bytes long, at most ",
                     kMaxSocketPath, " are allowed: choose a shorter XDG_RUNTIME_DIR"));
  }
  return path;
}

}  // namespace

std::string SocketAddress(absl::string_view path) {
  std::string address = "unix:";
  for (const char c : path) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("/-._~", c)) {
      address += c;
    } else {
      absl::StrAppendFormat(&address, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return address;
}

absl::StatusOr<Home> PrepareHome(const std::string& folder) {
  const absl::StatusOr<std::string> real = process::MakePrivateHome(folder);
  if (!real.ok()) return real.status();
  Home home(*real);
  for (const std::string& part : {home.log_folder, home.run_folder}) {
    if (absl::Status made = process::MakePrivateFolder(part); !made.ok()) return made;
  }
  absl::StatusOr<std::string> client = SocketPath(home, "ablate.sock");
  if (!client.ok()) return client.status();
  absl::StatusOr<std::string> worker = SocketPath(home, "worker.sock");
  if (!worker.ok()) return worker.status();
  home.client_socket = *std::move(client);
  home.worker_socket = *std::move(worker);
  return home;
}

}  // namespace ablate::launch
