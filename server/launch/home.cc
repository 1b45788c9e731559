// Folders that are ours alone, and socket paths that fit into a sockaddr_un.
#include "server/launch/home.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace ablate::launch {
namespace {

constexpr size_t kLongestSocketPath = 107;  // sockaddr_un's 108 bytes hold a terminating zero

absl::Status CheckOurs(const std::string& folder) {
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at folder ", folder));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(folder, " is not a folder"));
  }
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "folder ", folder, " belongs to user ", info.st_uid, ", must belong to user ", geteuid()));
  }
  if ((info.st_mode & 0777) != 0700) {
    return absl::FailedPreconditionError(
        absl::StrFormat("folder %s has mode %03o, must be 700 (chmod 700 %s)", folder,
                        info.st_mode & 0777, folder));
  }
  return absl::OkStatus();
}

// A folder that only its owner can enter; one that exists is never changed.
absl::Status MakePrivateFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make folder ", folder));
  }
  return CheckOurs(folder);
}

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
  absl::Status made = MakePrivateFolder(folder);
  if (!made.ok()) return made;
  return folder;
}

absl::StatusOr<std::string> SocketPath(const Home& home, absl::string_view name) {
  const std::string natural = absl::StrCat(home.run, "/", name);
  if (natural.size() <= kLongestSocketPath) return natural;
  absl::StatusOr<std::string> folder = ShortFolder();
  if (!folder.ok()) return folder.status();
  const std::string path = absl::StrFormat("%s/%016x-%s", *folder, Hash(home.folder), name);
  if (path.size() > kLongestSocketPath) {
    return absl::FailedPreconditionError(
        absl::StrCat("socket path ", path, " is ", path.size(), " bytes long, at most ",
                     kLongestSocketPath, " are allowed: choose a shorter XDG_RUNTIME_DIR"));
  }
  return path;
}

// The folder itself, found through links, so that two spellings of it have one socket.
absl::StatusOr<std::string> MakeHomeFolder(const std::string& folder) {
  if (folder.empty()) return absl::InvalidArgumentError("the server's folder has no name");
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // it ended in a slash
  if (!error) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot make the folder above ", folder));
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make folder ", path.string()));
  }
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot find folder ", path.string()));
  }
  return real.string();
}

}  // namespace

absl::StatusOr<Home> PrepareHome(const std::string& folder) {
  const absl::StatusOr<std::string> real = MakeHomeFolder(folder);
  if (!real.ok()) return real.status();
  Home home;
  home.folder = *real;
  home.log = absl::StrCat(home.folder, "/log");
  home.run = absl::StrCat(home.folder, "/run");
  if (absl::Status ours = CheckOurs(home.folder); !ours.ok()) return ours;
  for (const std::string& part : {home.log, home.run}) {
    if (absl::Status made = MakePrivateFolder(part); !made.ok()) return made;
  }
  absl::StatusOr<std::string> client = SocketPath(home, "ablate.sock");
  if (!client.ok()) return client.status();
  absl::StatusOr<std::string> worker = SocketPath(home, "worker.sock");
  if (!worker.ok()) return worker.status();
  home.client_socket = *std::move(client);
  home.worker_socket = *std::move(worker);
  home.address_file = absl::StrCat(home.run, "/address");
  home.pid_file = absl::StrCat(home.run, "/ablated.pid");
  return home;
}

}  // namespace ablate::launch
