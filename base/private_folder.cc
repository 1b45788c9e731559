#include "base/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

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
  if (!path.has_filename()) path = path.parent_path();  // the name ended in a slash
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
  RETURN_IF_ERROR(CheckPrivateFolder(real));
  return real;
}

std::optional<std::string> EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string DefaultHome(const Environment& environment) {
  if (const auto home = environment("ABLATE_HOME")) return *home;
  const std::string data = environment("XDG_DATA_HOME").value_or("");
  // XDG requires absolute folders; others must be ignored.
  if (absl::StartsWith(data, "/")) return absl::StrCat(data, "/ablate");
  const auto user = environment("HOME");
  return user ? absl::StrCat(*user, "/.local/share/ablate") : "";
}

HomeFiles::HomeFiles(const std::string& home)
    : folder(home),
      run_folder(std::filesystem::path(home) / "run"),
      log_folder(std::filesystem::path(home) / "log"),
      address_file(absl::StrCat(run_folder, "/address")),
      pid_file(absl::StrCat(run_folder, "/ablated.pid")),
      log_file(absl::StrCat(log_folder, "/ablated.log")) {}

}  // namespace ablate::process
