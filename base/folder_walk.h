// Visits or removes everything below a folder that a program may change.
#ifndef ABLATE_BASE_FOLDER_WALK_H_
#define ABLATE_BASE_FOLDER_WALK_H_

#include <sys/stat.h>

#include <string>
#include <system_error>

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

// Removes a folder with everything in it, also where its owner has no rights to folders below. A
// name that doesn't exist is no error. The caller must be the only one who changes the folder.
std::error_code RemoveFolder(const std::string& folder);

}  // namespace ablate

#endif  // ABLATE_BASE_FOLDER_WALK_H_
