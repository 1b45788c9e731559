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

// Written beside its final name, and removed again unless it is kept.
class PartFile {
 public:
  explicit PartFile(std::string path, Existing existing = Existing::kReplace);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  // ALREADY_EXISTS as Rename's, before anything is written.
  absl::Status Open();
  absl::Status Write(absl::string_view data);
  // The last call: the bytes are on disk and have the final name.
  absl::Status Keep();

 private:
  const std::string path_;
  const std::string part_;
  const Existing existing_;
  int file_ = -1;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PART_FILE_H_
