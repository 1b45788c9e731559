// A file that appears under its name only when it is whole.
#ifndef ABLATE_CLIENT_PART_FILE_H_
#define ABLATE_CLIENT_PART_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::client {

// What may stand at the final name.
enum class Existing { kReplace, kRefuse };

// The error that errno says about `path`.
absl::Status SystemError(const std::string& path);

// Writes all of `data` to an open file that is called `path`.
absl::Status WriteAll(int file, const std::string& path, absl::string_view data);

// `from` becomes `to`. ALREADY_EXISTS if there is something and it is to be refused.
absl::Status Rename(const std::string& from, const std::string& to, Existing existing);

// Written beside its final name, and removed again unless it is kept. A symbolic link at that name
// stays, and what it points to is replaced; a device or a pipe is written to as it is.
class PartFile {
 public:
  explicit PartFile(std::string path, Existing existing = Existing::kReplace);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  // Before anything is written: ALREADY_EXISTS as Rename's, FAILED_PRECONDITION for what can't be
  // replaced, such as a folder.
  absl::Status Open();
  absl::Status Write(absl::string_view data);
  // The last call: the bytes are on disk and have the final name.
  absl::Status Keep();

 private:
  // Looks at what stands at the final name.
  absl::Status FindTarget();
  absl::Status Create();

  const std::string path_;
  const Existing existing_;
  std::string target_;  // the path, or what the link there points to
  std::string part_;    // what is renamed to it; empty: the target itself is written to
  int file_ = -1;
};

// The whole of a small file in one go.
absl::Status WriteFile(const std::string& path, absl::string_view data);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PART_FILE_H_
