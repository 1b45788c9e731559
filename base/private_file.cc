#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace ablate::process {
namespace {

absl::Status CheckFile(const std::string& file, const struct stat& info, size_t max_bytes,
                       Readers readers) {
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(file, " is not a regular file"));
  }
  if (readers == Readers::kOwner && (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s has mode %04o: it holds a secret, and others may not read or write it (chmod 600 %s)",
        file, info.st_mode & 07777, file));
  }
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " has ", info.st_size, " bytes, at most ", max_bytes, " are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadBoundedFile(const std::string& file, size_t max_bytes,
                                            Readers readers) {
  // Checks the opened file, not its name; doesn't wait for one, a pipe for instance.
  const FileDescriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!opened.open() || fstat(opened.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", file));
  }
  RETURN_IF_ERROR(CheckFile(file, info, max_bytes, readers));
  // One more byte shows that the file grew; then don't read it now.
  std::string content(max_bytes + 1, '\0');
  size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = read(opened.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", file));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > max_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " has more than the ", max_bytes, " bytes that are allowed"));
  }
  content.resize(size);
  return content;
}

absl::Status CreateFile(const std::string& file, absl::string_view content, Readers readers) {
  const mode_t mode = readers == Readers::kOwner ? 0600 : 0644;
  const FileDescriptor made(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!made.open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", file));
  if (WriteAll(made.get(), content) && fsync(made.get()) == 0) return absl::OkStatus();
  const int error = errno;
  unlink(file.c_str());
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", file));
}

absl::Status SyncFolder(const std::string& folder) {
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open() || fsync(opened.get()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write folder ", folder));
  }
  return absl::OkStatus();
}

}  // namespace ablate::process
