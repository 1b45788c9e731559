#include "base/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace ablate::process {

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
  std::ifstream in(file, std::ios::binary);
  std::string content;
  // read reports failure; an iterator over a folder would throw.
  char part[4096];
  while (in.read(part, sizeof(part)) || in.gcount() > 0) {
    content.append(part, static_cast<size_t>(in.gcount()));
  }
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
