// A folder of files that appears under its name only when it is whole.
#ifndef ABLATE_CLIENT_PART_FOLDER_H_
#define ABLATE_CLIENT_PART_FOLDER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/part_file.h"

namespace ablate::client {

// Whether `path`, which a server sent, stays below the folder that it is relative to: names between
// single slashes, none of them "." or "..", without control characters.
bool IsPathBelow(absl::string_view path);

// Written beside its final name, and removed again unless it is kept.
class PartFolder {
 public:
  // Whether a file of this name may be deleted together with a folder that is replaced.
  using IsOurs = std::function<bool(const std::string& name)>;

  // With kReplace a folder may stand at the final name if it holds nothing but folders and files
  // that are `ours`.
  PartFolder(std::string path, Existing existing, IsOurs ours);
  PartFolder(const PartFolder&) = delete;
  PartFolder& operator=(const PartFolder&) = delete;
  ~PartFolder();

  // ALREADY_EXISTS or FAILED_PRECONDITION if what is there is not to be replaced.
  absl::Status Open();
  // Appends to a file below the folder. The writes of one file follow each other.
  absl::Status Write(const std::string& path, absl::string_view data);
  // The last call: everything is on disk and has its final name.
  absl::Status Keep();

 private:
  absl::Status Begin(const std::string& path);
  absl::Status CheckReplaceable() const;

  const std::string path_;
  const std::string part_;
  const Existing existing_;
  const IsOurs ours_;
  bool open_ = false;
  std::string current_;  // path of the file that is being written
  int file_ = -1;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PART_FOLDER_H_
