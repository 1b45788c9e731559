// Owns file descriptors; writes and replaces files.
#ifndef ABLATE_BASE_FILE_H_
#define ABLATE_BASE_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

// A disk with fewer free bytes counts as full. A starting server needs about as many for the index
// of the database's log, a schema, an address and logs.
inline constexpr uint64_t kLeastRoom = 1 << 20;

// Raises this process's limit of open descriptors to 65,536, or as far as is allowed: the usual
// limit of 1,024 is soft.
void RaiseFileLimit();

// Owns a file descriptor and closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  // Closes the descriptor early; returns false, with errno, if written data may be lost.
  bool Close();

 private:
  int fd_ = -1;
};

// Writes all bytes, or returns false with errno.
bool WriteAll(int file, absl::string_view bytes);

// Returns the content of a file; empty if it can't be read.
std::string ReadWholeFile(const std::string& file);

// Replaces the file by rename: readers see either the old content or the new one, never a part.
absl::Status ReplaceFile(const std::string& file, absl::string_view content);

}  // namespace ablate::process

#endif  // ABLATE_BASE_FILE_H_
