// Writes files, and folders of files, that appear under their name only when they are whole.
#ifndef ABLATE_CLIENT_OUTPUT_PART_FILE_H_
#define ABLATE_CLIENT_OUTPUT_PART_FILE_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::client {

// Returns ".html" for "Report.HTML"; "" without a suffix.
std::string EndingOf(const std::string& path);

// Treatment of an existing file of the final name. The error of kRefuse mentions --force, which
// commands that write files have.
enum class IfExists { kReplace, kRefuse };

// Writes a file that gets its final name when it is committed, and is removed otherwise. Until then
// it has no name, or, on file systems without that, a temporary name in the same folder; such a
// file stays if a signal ends the program. A symbolic link at the final name stays, and its target
// is replaced. A device or a pipe is written to directly, also with kRefuse, because nothing of it
// is lost. The new file has the permissions of the one that it replaces.
class PartFile {
 public:
  // Returns the treatment of an existing file; called again when the file gets its name.
  using Decide = std::function<IfExists()>;

  PartFile(std::string path, Decide decide);
  explicit PartFile(std::string path, IfExists if_exists = IfExists::kReplace);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  // Must be called first. ALREADY_EXISTS if there is a file and kRefuse holds, FAILED_PRECONDITION
  // for something that can't be replaced, such as a folder, INVALID_ARGUMENT for "-".
  absl::Status Open();
  absl::Status Write(absl::string_view data);
  // Must be called last. The bytes are then on disk and have the final name.
  absl::Status Commit();

 private:
  // Examines the file of the final name.
  absl::Status FindTarget();
  absl::Status Create();
  bool CreateWithoutName();
  // Gives the file its final name.
  absl::Status Publish(IfExists if_exists);

  const std::string path_;
  const Decide decide_;
  std::string target_;          // the path, or what the link there points to
  std::string part_;            // what is renamed to it; empty: none yet, or is_target_
  bool is_target_ = false;      // a device or a pipe, which is written to as it is
  std::optional<mode_t> mode_;  // permissions of what is replaced; none: the usual ones
  process::FileDescriptor file_;
};

// Writes a small file at once.
absl::Status WriteFile(const std::string& path, absl::string_view data,
                       IfExists if_exists = IfExists::kReplace);

// Returns true if `path`, which a server sent, stays below the folder that it is relative to: names
// between single slashes, not "." or "..", without control characters.
bool IsPathBelow(absl::string_view path);

// Writes a folder under a temporary name and removes it unless it is committed. The new folder has
// the permissions of the one that it replaces.
class PartFolder {
 public:
  // Returns true if a file of this name may be deleted with a folder that is replaced.
  using IsOurs = std::function<bool(const std::string& name)>;

  // With kReplace the final name may be a folder if it holds only folders and files that are
  // `ours`.
  PartFolder(std::string path, IfExists if_exists, IsOurs ours);
  PartFolder(const PartFolder&) = delete;
  PartFolder& operator=(const PartFolder&) = delete;
  ~PartFolder();

  // Must be called first. ALREADY_EXISTS or FAILED_PRECONDITION if the existing folder must not be
  // replaced, INVALID_ARGUMENT for "-".
  absl::Status Open();
  // Appends to a file below the folder. The writes of one file follow each other.
  absl::Status Write(const std::string& path, absl::string_view data);
  // Must be called last. Everything is then on disk and has its final name.
  absl::Status Commit();

 private:
  absl::Status StartFile(const std::string& path);
  absl::Status CheckReplaceable() const;

  const std::string path_;
  const std::string part_;
  const IfExists if_exists_;
  const IsOurs ours_;
  bool open_ = false;
  std::string current_;  // path of the file that is being written
  process::FileDescriptor file_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_PART_FILE_H_
