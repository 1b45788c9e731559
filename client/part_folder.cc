// A folder of files that appears under its name only when it is whole.
#include "client/part_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/utf8.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

// One call for thousands of files.
absl::Status SyncFileSystemOf(const std::string& folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return SystemError(folder);
  const int synced = syncfs(opened);
  close(opened);
  return synced == 0 ? absl::OkStatus() : SystemError(folder);
}

}  // namespace

bool IsPathBelow(absl::string_view path) {
  for (const absl::string_view name : absl::StrSplit(path, '/')) {
    if (name.empty() || name == "." || name == "..") return false;
  }
  return Printable(path) == path;
}

PartFolder::PartFolder(std::string path, Existing existing, IsOurs ours)
    : path_(std::move(path)),
      part_(absl::StrCat(path_, ".", getpid(), ".part")),
      existing_(existing),
      ours_(std::move(ours)) {}

PartFolder::~PartFolder() {
  if (file_ >= 0) close(file_);
  std::error_code ignored;
  if (open_) fs::remove_all(part_, ignored);
}

absl::Status PartFolder::CheckReplaceable() const {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path_, error);
  if (!fs::exists(status)) return absl::OkStatus();
  if (existing_ == Existing::kRefuse) {
    return absl::AlreadyExistsError(absl::StrCat(path_, " exists already"));
  }
  if (!fs::is_directory(status)) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is no folder"));
  }
  for (auto at = fs::recursive_directory_iterator(path_, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const bool folder = fs::is_directory(at->symlink_status());
    if (folder || (at->is_regular_file() && ours_(at->path().filename().string()))) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(at->path().string(), " is not from an export: ", path_, " is not replaced"));
  }
  return error ? absl::FailedPreconditionError(absl::StrCat(path_, ": ", error.message()))
               : absl::OkStatus();
}

absl::Status PartFolder::Open() {
  if (const absl::Status free = CheckReplaceable(); !free.ok()) return free;
  if (mkdir(part_.c_str(), 0777) != 0) return SystemError(part_);
  open_ = true;
  return absl::OkStatus();
}

absl::Status PartFolder::Begin(const std::string& path) {
  if (!IsPathBelow(path)) {
    return absl::DataLossError(absl::StrCat("the server sends a file named ", Printable(path)));
  }
  const std::string whole = absl::StrCat(part_, "/", path);
  std::error_code error;
  fs::create_directories(fs::path(whole).parent_path(), error);
  if (error) return absl::FailedPreconditionError(absl::StrCat(whole, ": ", error.message()));
  if (file_ >= 0) close(std::exchange(file_, -1));
  file_ = open(whole.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file_ < 0) return SystemError(whole);
  current_ = path;
  return absl::OkStatus();
}

absl::Status PartFolder::Write(const std::string& path, absl::string_view data) {
  if (file_ < 0 || path != current_) {
    if (const absl::Status begun = Begin(path); !begun.ok()) return begun;
  }
  return WriteAll(file_, absl::StrCat(part_, "/", path), data);
}

absl::Status PartFolder::Keep() {
  if (const absl::Status synced = SyncFileSystemOf(part_); !synced.ok()) return synced;
  if (const absl::Status free = CheckReplaceable(); !free.ok()) return free;
  const std::string old = absl::StrCat(path_, ".", getpid(), ".old");
  std::error_code error;
  const bool replaces = fs::exists(path_, error);
  if (replaces && std::rename(path_.c_str(), old.c_str()) != 0) return SystemError(path_);
  if (const absl::Status renamed = Rename(part_, path_, Existing::kRefuse); !renamed.ok()) {
    if (replaces) std::rename(old.c_str(), path_.c_str());
    return renamed;
  }
  open_ = false;
  if (replaces) fs::remove_all(old, error);
  return absl::OkStatus();
}

}  // namespace ablate::client
