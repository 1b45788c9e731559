// A file that appears under its name only when it is whole.
#include "client/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::client {
namespace {

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
    : path_(std::move(path)),
      part_(absl::StrCat(path_, ".", getpid(), ".part")),
      existing_(existing) {}

PartFile::~PartFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(part_.c_str());
}

absl::Status PartFile::Open() {
  if (existing_ == Existing::kRefuse && Exists(path_)) return AlreadyThere(path_);
  file_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return file_ < 0 ? SystemError(part_) : absl::OkStatus();
}

absl::Status PartFile::Write(absl::string_view data) { return WriteAll(file_, part_, data); }

absl::Status PartFile::Keep() {
  if (fsync(file_) != 0) return SystemError(part_);
  if (const absl::Status renamed = Rename(part_, path_, existing_); !renamed.ok()) return renamed;
  close(std::exchange(file_, -1));
  return absl::OkStatus();
}

}  // namespace ablate::client
