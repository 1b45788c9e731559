// Visits everything below a folder that others may change at the same time.
#ifndef ABLATE_BASE_FOLDER_WALK_H_
#define ABLATE_BASE_FOLDER_WALK_H_

#include <sys/stat.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace ablate {

// The files of a deeper folder aren't visited. Each level has an open descriptor.
inline constexpr int kMaxFolderDepth = 64;

struct FolderEntry {
  int folder;        // an open descriptor of the folder that has it
  std::string name;  // in that folder
  std::string path;  // the name of the walked folder, and the path below it
  struct stat info;  // of a link: of the link itself
};

// Calls `visit` for everything below the folder `name` of the open folder `parent`; a folder comes
// before its content. Everything is opened relative to an open folder, and no link is followed. A
// folder that can't be opened is left out, because it may be gone. Returns the first error of
// `visit`, or INVALID_ARGUMENT if folders are nested more than kMaxFolderDepth deep.
absl::Status WalkFolder(int parent, const std::string& name,
                        absl::FunctionRef<absl::Status(const FolderEntry&)> visit);

}  // namespace ablate

#endif  // ABLATE_BASE_FOLDER_WALK_H_
