#include "base/folder_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace ablate {
namespace {

using Visit = absl::FunctionRef<absl::Status(const FolderEntry&)>;

absl::Status Walk(int parent, const std::string& name, const std::string& path, int depth,
                  Visit visit) {
  const int folder = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return absl::OkStatus();
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(folder), closedir);
  if (listing == nullptr) {
    const int error = errno;
    close(folder);
    return absl::ErrnoToStatus(error, path);
  }
  if (depth > kMaxFolderDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("folders are nested more than ", kMaxFolderDepth, " deep"));
  }
  while (const dirent* listed = readdir(listing.get())) {
    FolderEntry entry{folder, listed->d_name, absl::StrCat(path, "/", listed->d_name), {}};
    if (entry.name == "." || entry.name == "..") continue;
    if (fstatat(folder, listed->d_name, &entry.info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    RETURN_IF_ERROR(visit(entry));
    if (!S_ISDIR(entry.info.st_mode)) continue;
    RETURN_IF_ERROR(Walk(folder, entry.name, entry.path, depth + 1, visit));
  }
  return absl::OkStatus();
}

namespace fs = std::filesystem;

// Gives the owner all rights to a folder and those in it, of which a program may have taken them
// away.
void OpenFolders(const fs::path& folder) {
  std::error_code ignored;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, ignored);
  for (auto at = fs::directory_iterator(folder, ignored);
       !ignored && at != fs::directory_iterator(); at.increment(ignored)) {
    std::error_code failed;
    if (fs::is_directory(at->symlink_status(failed))) OpenFolders(at->path());
  }
}

}  // namespace

absl::Status WalkFolder(int parent, const std::string& name, Visit visit) {
  return Walk(parent, name, name, /*depth=*/0, visit);
}

std::error_code RemoveFolder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) return error;
  OpenFolders(folder);
  fs::remove_all(folder, error);
  return error;
}

}  // namespace ablate
