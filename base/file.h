// Files and descriptors, as the programs use them beside plain streams.
#ifndef ABLATE_PROCESS_FILE_H_
#define ABLATE_PROCESS_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

// A disk that has fewer bytes left counts as full: a start of the server writes about so many, the
// index of the database's log, a schema, an address and logs.
inline constexpr uint64_t kLeastRoom = 1 << 20;

// A descriptor that is closed with its owner.
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
  // Closes it before its owner goes; false, with errno, if what was written may be lost.
  bool Close();

 private:
  int fd_ = -1;
};

// Writes all bytes, or returns false with errno.
bool WriteAll(int file, absl::string_view bytes);

// All bytes of a file; none if it can't be read.
std::string ReadWholeFile(const std::string& file);

// Replaces the file by rename: readers see the old content or the new one, never a part.
absl::Status ReplaceFile(const std::string& file, absl::string_view content);

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_FILE_H_
