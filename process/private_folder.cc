// Checks owner, mode and kind before anything is written.
#include "process/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ablate::process {

absl::Status CheckPrivateFolder(const std::string& folder) {
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

absl::Status MakePrivateFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make folder ", folder));
  }
  return CheckPrivateFolder(folder);
}

absl::StatusOr<std::string> MakePrivateHome(const std::string& folder) {
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
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot find folder ", path.string()));
  }
  if (absl::Status ours = CheckPrivateFolder(real); !ours.ok()) return ours;
  return real;
}

absl::StatusOr<int> OpenLog(const std::string& path) {
  // Without O_NONBLOCK the opening of a pipe would wait for its reader.
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (descriptor < 0) {
    if (errno != ELOOP) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open log ", path));
    return absl::FailedPreconditionError(absl::StrCat("log ", path, " is a link, must be a file"));
  }
  struct stat info;
  const bool ours = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) &&
                    info.st_uid == geteuid() && fcntl(descriptor, F_SETFL, O_APPEND) == 0;
  if (ours) return descriptor;
  close(descriptor);
  return absl::FailedPreconditionError(
      absl::StrCat("log ", path, " is not a file of user ", geteuid()));
}

}  // namespace ablate::process
