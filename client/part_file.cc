// A file that appears under its name only when it is whole.
#include "client/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::client {
namespace {

constexpr int kMostNames = 100;  // that are tried for a file beside

absl::Status AlreadyThere(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(path, " exists already"));
}

bool Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

}  // namespace

absl::Status SystemError(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
}

absl::Status WriteAll(int file, const std::string& path, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t written = write(file, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(path);
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status Rename(const std::string& from, const std::string& to, Existing existing) {
  if (existing == Existing::kRefuse) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      return absl::OkStatus();
    }
    if (errno == EEXIST) return AlreadyThere(to);
    // Some file systems can't refuse by themselves.
    if (errno != EINVAL && errno != ENOSYS) return SystemError(to);
    if (Exists(to)) return AlreadyThere(to);
  }
  return std::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : SystemError(to);
}

PartFile::PartFile(std::string path, Existing existing)
    : path_(std::move(path)), existing_(existing), target_(path_) {}

PartFile::~PartFile() {
  if (file_ < 0) return;
  close(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

absl::Status PartFile::FindTarget() {
  struct stat status;
  if (lstat(path_.c_str(), &status) != 0) return absl::OkStatus();  // nothing, or open says what
  if (existing_ == Existing::kRefuse) return AlreadyThere(path_);
  const bool link = S_ISLNK(status.st_mode);
  if (link && stat(path_.c_str(), &status) != 0) return SystemError(path_);
  if (S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is a folder"));
  }
  if (!S_ISREG(status.st_mode)) {
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    return file_ < 0 ? SystemError(path_) : absl::OkStatus();
  }
  if (!link) return absl::OkStatus();
  std::error_code error;
  target_ = std::filesystem::canonical(path_, error).string();
  return error ? absl::FailedPreconditionError(absl::StrCat(path_, ": ", error.message()))
               : absl::OkStatus();
}

absl::Status PartFile::Create() {
  // Names that were left behind, or laid out by someone else, are passed over.
  for (int attempt = 0; attempt < kMostNames && file_ < 0; ++attempt) {
    part_ = absl::StrCat(target_, ".", getpid(), ".", attempt, ".part");
    file_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) break;
  }
  return file_ < 0 ? SystemError(part_) : absl::OkStatus();
}

absl::Status PartFile::Open() {
  if (const absl::Status found = FindTarget(); !found.ok()) return found;
  return file_ >= 0 ? absl::OkStatus() : Create();
}

absl::Status PartFile::Write(absl::string_view data) {
  return WriteAll(file_, part_.empty() ? path_ : part_, data);
}

absl::Status PartFile::Keep() {
  if (!part_.empty()) {
    if (fsync(file_) != 0) return SystemError(part_);
    const absl::Status renamed = Rename(part_, target_, existing_);
    if (!renamed.ok()) return renamed;
  }
  const int file = std::exchange(file_, -1);
  return close(file) == 0 ? absl::OkStatus() : SystemError(path_);
}

absl::Status WriteFile(const std::string& path, absl::string_view data) {
  PartFile file(path);
  if (absl::Status opened = file.Open(); !opened.ok()) return opened;
  if (absl::Status written = file.Write(data); !written.ok()) return written;
  return file.Keep();
}

}  // namespace ablate::client
