#include "base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace ablate::process {

void RaiseFileLimit() {
  constexpr rlim_t kMaxFiles = 65'536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMaxFiles));
  setrlimit(RLIMIT_NOFILE, &limit);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

bool FileDescriptor::Close() { return close(std::exchange(fd_, -1)) == 0; }

bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string ReadWholeFile(const std::string& file) {
  const FileDescriptor from(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat known {};
  if (!from.open() || fstat(from.get(), &known) != 0) return "";
  // Files of the kernel have no size before they are read.
  constexpr size_t kLeast = 4096;
  std::string content;
  content.resize(static_cast<size_t>(known.st_size) + kLeast);
  size_t filled = 0;
  while (true) {
    if (filled == content.size()) content.resize(2 * content.size());
    const ssize_t got = read(from.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return "";
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  content.resize(filled);
  return content;
}

absl::Status ReplaceFile(const std::string& file, absl::string_view content) {
  const std::string draft = absl::StrCat(file, ".new");
  errno = 0;
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (out && std::rename(draft.c_str(), file.c_str()) == 0) return absl::OkStatus();
  // A stream need not set errno.
  return absl::ErrnoToStatus(errno != 0 ? errno : EIO, absl::StrCat("cannot write ", file));
}

}  // namespace ablate::process
