#include "storage/sqlite/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace ablate::storage {
namespace {

struct FileSystem {
  int64_t type;
  absl::string_view name;
};

// From statfs(2) and the kernel's headers. FUSE is left out: most of what it serves is local.
constexpr FileSystem kNetworkFileSystems[] = {
    {0x6969, "NFS"},        {0x517b, "SMB"},       {0xfe534d42, "SMB2"}, {0xff534d42, "CIFS"},
    {0x01021997, "9P"},     {0x5346414f, "AFS"},   {0x73757245, "Coda"}, {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x01161970, "GFS2"}, {0x7461636f, "OCFS2"},
    {0x19830326, "BeeGFS"}, {0xaad7aaea, "PanFS"},
};

absl::Status CheckFileSystem(const std::string& folder) {
  struct statfs found;
  if (statfs(folder.c_str(), &found) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at folder ", folder));
  }
  const absl::string_view network = NetworkFileSystem(static_cast<int64_t>(found.f_type));
  if (network.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "folder ", folder, " is on a network file system (", network, "); expected a local disk"));
}

}  // namespace

absl::string_view NetworkFileSystem(int64_t type) {
  for (const FileSystem& known : kNetworkFileSystems) {
    if (known.type == (type & 0xffffffff)) return known.name;
  }
  return "";
}

absl::StatusOr<process::FileDescriptor> LockFolder(const std::string& folder) {
  const std::filesystem::path path(folder);
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create folder ", folder));
  }
  RETURN_IF_ERROR(CheckFileSystem(folder));
  // Locks the folder itself: a file in it could be removed, and another one locked.
  process::FileDescriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", folder));
  // If a server is killed while it starts a worker, the child process keeps the lock until it has
  // become the worker's program.
  constexpr int kTries = 10;
  constexpr absl::Duration kBetween = absl::Milliseconds(50);
  for (int tried = 0; tried < kTries; ++tried) {
    if (tried > 0) absl::SleepFor(kBetween);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", folder));
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " is in use by another server. Stop it first (`ablate down`)"));
}

}  // namespace ablate::storage
