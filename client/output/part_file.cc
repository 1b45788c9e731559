#include "client/output/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;
using process::FileDescriptor;

constexpr mode_t kPermissions = 0777;
constexpr int kMaxAttempts = 100;  // to find a free temporary name

absl::Status AlreadyThere(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(path, " exists already: --force replaces it"));
}

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

// Returns the error of errno about `path`.
absl::Status SystemError(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
}

// Returns the error of errno about `path`, or about its folder if that is the cause.
absl::Status SystemErrorBeside(const std::string& path) {
  const bool of_folder = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EROFS;
  if (!of_folder) return SystemError(path);
  const int reason = errno;
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).parent_path();
  errno = reason;
  return SystemError(absl::StrCat("folder ", folder.string()));
}

// Returns true after a chmod that failed because the file system stores no permissions, so that
// none can be copied. Some file systems mounted by users, or of other systems, don't.
bool KeepsNoPermissions() { return errno == EPERM || errno == ENOTSUP || errno == ENOSYS; }

// `from` becomes `to`. ALREADY_EXISTS if there is something and no `force`.
absl::Status Rename(const std::string& from, const std::string& to, bool force) {
  if (!force) {
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

// The open file as a path.
std::string DescriptorPath(int file) { return absl::StrCat("/proc/self/fd/", file); }

// Tries temporary names next to `target` until one is free for `use`, which sets errno; it is then
// `*name`. Existing files of such names are skipped.
bool UseFreeName(const std::string& target, std::string* name,
                 const std::function<bool(const std::string&)>& use) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    *name = absl::StrCat(target, ".", getpid(), ".", attempt, ".part");
    if (use(*name)) return true;
    if (errno != EEXIST) break;
  }
  name->clear();
  return false;
}

// One call for thousands of files.
absl::Status SyncFileSystemOf(const std::string& folder) {
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.open() && syncfs(opened.get()) == 0 ? absl::OkStatus() : SystemError(folder);
}

}  // namespace

std::string EndingOf(const std::string& path) {
  return absl::AsciiStrToLower(fs::path(path).extension().string());
}

absl::Status CheckOutput(const Output& output, OutputKind kind) {
  struct stat status;
  if (!output.given() || output.is_standard() || output.force ||
      stat(output.path.c_str(), &status) != 0) {
    return absl::OkStatus();
  }
  const bool lost = (S_ISREG(status.st_mode) && kind != OutputKind::kFolder) ||
                    (S_ISDIR(status.st_mode) && kind != OutputKind::kFile);
  return lost ? AlreadyThere(output.path) : absl::OkStatus();
}

PartFile::PartFile(Output output) : output_(std::move(output)), target_(output_.path) {}

PartFile::~PartFile() {
  if (file_.open() && !part_.empty()) unlink(part_.c_str());
}

absl::Status PartFile::FindTarget() {
  struct stat status;
  if (lstat(output_.path.c_str(), &status) != 0)
    return absl::OkStatus();  // no file, or open returns the error
  const bool link = S_ISLNK(status.st_mode);
  if (link && stat(output_.path.c_str(), &status) != 0) return SystemError(output_.path);
  if (S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(output_.path, " is a folder"));
  }
  if (!S_ISREG(status.st_mode)) {
    is_target_ = true;
    file_ = FileDescriptor(open(output_.path.c_str(), O_WRONLY | O_CLOEXEC));
    return file_.open() ? absl::OkStatus() : SystemError(output_.path);
  }
  if (!output_.force) return AlreadyThere(output_.path);
  mode_ = status.st_mode & kPermissions;
  if (!link) return absl::OkStatus();
  std::error_code error;
  target_ = fs::canonical(output_.path, error).string();
  return error ? absl::FailedPreconditionError(absl::StrCat(output_.path, ": ", error.message()))
               : absl::OkStatus();
}

bool PartFile::CreateWithoutName() {
  const std::string folder = fs::path(target_).parent_path().string();
  file_ = FileDescriptor(open(folder.empty() ? "." : folder.c_str(),
                              O_TMPFILE | O_WRONLY | O_CLOEXEC, mode_.has_value() ? 0600 : 0666));
  if (!file_.open()) return false;
  if (access(DescriptorPath(file_.get()).c_str(), F_OK) == 0) return true;
  file_ = FileDescriptor();  // without /proc it would never get a name
  return false;
}

absl::Status PartFile::Create() {
  if (!CreateWithoutName()) {
    UseFreeName(target_, &part_, [this](const std::string& name) {
      file_ =
          FileDescriptor(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              mode_.has_value() ? 0600 : 0666));
      return file_.open();
    });
  }
  if (!file_.open()) return SystemErrorBeside(target_);
  if (!mode_.has_value() || fchmod(file_.get(), *mode_) == 0 || KeepsNoPermissions()) {
    return absl::OkStatus();
  }
  return SystemError(output_.path);
}

absl::Status PartFile::Open() {
  if (output_.is_standard()) {
    is_target_ = true;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(FindTarget());
  return file_.open() ? absl::OkStatus() : Create();
}

absl::Status PartFile::Write(absl::string_view data) {
  if (output_.is_standard()) {
    output_.standard->write(data.data(), static_cast<std::streamsize>(data.size()));
    return output_.standard->good() ? absl::OkStatus()
                                    : absl::AbortedError("writing the output failed");
  }
  return process::WriteAll(file_.get(), data) ? absl::OkStatus() : SystemError(output_.path);
}

absl::Status PartFile::Publish() {
  if (part_.empty()) {
    const auto link_to = [this](const std::string& name) {
      return linkat(AT_FDCWD, DescriptorPath(file_.get()).c_str(), AT_FDCWD, name.c_str(),
                    AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_to(target_)) return absl::OkStatus();
    if (errno != EEXIST) return SystemError(output_.path);
    if (!output_.force) return AlreadyThere(output_.path);
    if (!UseFreeName(target_, &part_, link_to)) return SystemError(output_.path);
  }
  return Rename(part_, target_, output_.force);
}

absl::Status PartFile::Commit() {
  if (!is_target_) {
    if (fsync(file_.get()) != 0) return SystemError(output_.path);
    if (absl::Status published = Publish(); !published.ok()) return published;
  }
  if (output_.is_standard()) return absl::OkStatus();
  return file_.Close() ? absl::OkStatus() : SystemError(output_.path);
}

absl::Status WriteFile(const Output& output, absl::string_view data) {
  PartFile file(output);
  RETURN_IF_ERROR(file.Open());
  RETURN_IF_ERROR(file.Write(data));
  return file.Commit();
}

bool IsPathBelow(absl::string_view path) {
  for (const absl::string_view name : absl::StrSplit(path, '/')) {
    if (name.empty() || name == "." || name == "..") return false;
  }
  return Printable(path) == path;
}

PartFolder::PartFolder(const Output& output, IsOurs ours, HasMark has_mark)
    : path_(WithoutSlashes(output.path)),
      part_(absl::StrCat(path_, ".", getpid(), ".part")),
      force_(output.force),
      ours_(std::move(ours)),
      has_mark_(std::move(has_mark)) {}

PartFolder::~PartFolder() {
  std::error_code ignored;
  if (open_) fs::remove_all(part_, ignored);
}

absl::Status PartFolder::CheckReplaceable() const {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path_, error);
  if (!fs::exists(status)) return absl::OkStatus();
  if (!force_) return AlreadyThere(path_);
  if (!fs::is_directory(status)) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is not a folder"));
  }
  const auto refuse = [this](absl::string_view problem) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, " is not replaced: ", problem, ". Remove the folder, or choose another one"));
  };
  bool has_files = false;
  for (auto at = fs::recursive_directory_iterator(path_, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (fs::is_directory(at->symlink_status())) continue;
    has_files = true;
    if (at->is_regular_file() && ours_(at->path().filename().string())) continue;
    return refuse(absl::StrCat(at->path().string(), " is not from an export"));
  }
  if (has_files && has_mark_ != nullptr && !has_mark_(path_)) {
    return refuse("it lacks the mark of a folder that ablate wrote");
  }
  return error ? absl::FailedPreconditionError(absl::StrCat(path_, ": ", error.message()))
               : absl::OkStatus();
}

absl::Status PartFolder::Open() {
  if (path_ == "-") {
    return absl::InvalidArgumentError(
        "--output: \"-\" is standard output, which can't take a folder; expected a folder's name, "
        "or ./- for one named \"-\"");
  }
  RETURN_IF_ERROR(CheckReplaceable());
  if (mkdir(part_.c_str(), 0777) != 0) return SystemErrorBeside(path_);
  open_ = true;
  return absl::OkStatus();
}

absl::Status PartFolder::StartFile(const std::string& path) {
  if (!IsPathBelow(path)) {
    return absl::DataLossError(absl::StrCat("the server sends a file named ", Printable(path)));
  }
  const std::string whole = absl::StrCat(part_, "/", path);
  std::error_code error;
  fs::create_directories(fs::path(whole).parent_path(), error);
  if (error) return absl::FailedPreconditionError(absl::StrCat(whole, ": ", error.message()));
  file_ = FileDescriptor(
      open(whole.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.open()) return SystemError(whole);
  current_ = path;
  return absl::OkStatus();
}

absl::Status PartFolder::Write(const std::string& path, absl::string_view data) {
  if (!file_.open() || path != current_) {
    if (const absl::Status begun = StartFile(path); !begun.ok()) return begun;
  }
  if (process::WriteAll(file_.get(), data)) return absl::OkStatus();
  return SystemError(absl::StrCat(part_, "/", path));
}

absl::Status PartFolder::MakeExecutable(const std::string& path) const {
  const std::string whole = absl::StrCat(part_, "/", path);
  std::error_code error;
  const auto mode = static_cast<mode_t>(fs::status(whole, error).permissions());
  const bool made = !error && chmod(whole.c_str(), mode | ((mode & 0444) >> 2)) == 0;
  return made || KeepsNoPermissions() ? absl::OkStatus() : SystemError(whole);
}

absl::Status PartFolder::Commit() {
  RETURN_IF_ERROR(SyncFileSystemOf(part_));
  RETURN_IF_ERROR(CheckReplaceable());
  const std::string old = absl::StrCat(path_, ".", getpid(), ".old");
  std::error_code error;
  const fs::file_status before = fs::status(path_, error);
  const bool replaces = fs::exists(before);
  if (replaces && chmod(part_.c_str(), static_cast<mode_t>(before.permissions())) != 0 &&
      !KeepsNoPermissions()) {
    return SystemError(part_);
  }
  if (replaces && std::rename(path_.c_str(), old.c_str()) != 0) return SystemError(path_);
  if (const absl::Status renamed = Rename(part_, path_, /*force=*/false); !renamed.ok()) {
    if (replaces) std::rename(old.c_str(), path_.c_str());
    return renamed;
  }
  open_ = false;
  if (replaces) fs::remove_all(old, error);
  return absl::OkStatus();
}

}  // namespace ablate::client
