// Writes files, and folders of files, that appear under their name only when they are whole.
#ifndef ABLATE_CLIENT_OUTPUT_PART_FILE_H_
#define ABLATE_CLIENT_OUTPUT_PART_FILE_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace ablate::client {

// Returns ".html" for "Report.HTML"; "" without a suffix.
std::string EndingOf(const std::string& path);

// Destination of a command's output, as Command::Output reads it.
struct Output {
  std::string path;  // "-" is standard output; empty if none was given
  bool force =
      false;  // replace what exists; otherwise it is refused by an error that names --force
  std::ostream* standard = nullptr;  // standard output, set before a command runs

  bool given() const { return !path.empty(); }
  bool is_standard() const { return path == "-"; }
  // Returns the path as messages show it.
  std::string name() const { return is_standard() ? "standard output" : path; }
};

enum class OutputKind { kFile, kFolder, kFileOrFolder };

// Returns ALREADY_EXISTS if the output would replace a file or folder without `force`. Accepts an
// existing one of the wrong kind, which PartFile and PartFolder refuse.
absl::Status CheckOutput(const Output& output, OutputKind kind);

// Writes a file that gets its final name when it is committed, and is removed otherwise. Until then
// it has no name, or, on file systems without that, a temporary name in the same folder; such a
// file stays if a signal ends the program. A symbolic link at the final name stays, and its target
// is replaced. Standard output, a device or a pipe is written to directly, also without `force`,
// because nothing of it is lost. The new file has the permissions of the one that it replaces.
class PartFile {
 public:
  explicit PartFile(Output output);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();

  // Must be called first. ALREADY_EXISTS if there is a file and no `force`, FAILED_PRECONDITION for
  // something that can't be replaced, such as a folder.
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
  absl::Status Publish();

  const Output output_;
  std::string target_;          // the path, or what the link there points to
  std::string part_;            // what is renamed to it; empty: none yet, or is_target_
  bool is_target_ = false;      // a stream, device or pipe, which is written to as it is
  std::optional<mode_t> mode_;  // permissions of what is replaced; none: the usual ones
  process::FileDescriptor file_;
};

// Writes a small file at once.
absl::Status WriteFile(const Output& output, absl::string_view data);

// Returns true if `path`, which a server sent, stays below the folder that it is relative to: names
// between single slashes, not "." or "..", without control characters.
bool IsPathBelow(absl::string_view path);

// Writes a folder under a temporary name and removes it unless it is committed. The new folder has
// the permissions of the one that it replaces.
class PartFolder {
 public:
  // Returns true if a file of this name may be deleted with a folder that is replaced.
  using IsOurs = std::function<bool(const std::string& name)>;
  // Returns true if the folder has a mark that it was written by the same command, for files whose
  // names tell nothing.
  using HasMark = std::function<bool(const std::string& folder)>;

  // With `force` the final name may be a folder if it holds only folders and files that are
  // `ours`, and has the mark or no file. Slashes at the end of the path are left out.
  PartFolder(const Output& output, IsOurs ours, HasMark has_mark = nullptr);
  PartFolder(const PartFolder&) = delete;
  PartFolder& operator=(const PartFolder&) = delete;
  ~PartFolder();

  // Must be called first. ALREADY_EXISTS or FAILED_PRECONDITION if the existing folder must not be
  // replaced, INVALID_ARGUMENT for "-".
  absl::Status Open();
  // Appends to a file below the folder. The writes of one file follow each other.
  absl::Status Write(const std::string& path, absl::string_view data);
  // Lets everybody who may read a written file execute it.
  absl::Status MakeExecutable(const std::string& path) const;
  // Must be called last. Everything is then on disk and has its final name.
  absl::Status Commit();

 private:
  absl::Status StartFile(const std::string& path);
  absl::Status CheckReplaceable() const;

  const std::string path_;
  const std::string part_;
  const bool force_;
  const IsOurs ours_;
  const HasMark has_mark_;
  bool open_ = false;
  std::string current_;  // path of the file that is being written
  process::FileDescriptor file_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_PART_FILE_H_
