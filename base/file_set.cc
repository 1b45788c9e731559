#include "base/file_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/folder_walk.h"
#include "base/safetensors.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace ablate {
namespace {

constexpr char kExecutableKey[] = "executable";  // in the metadata: paths, one per line
constexpr size_t kMaxPathBytes = 1000;

absl::Status TooManyFiles() {
  return absl::InvalidArgumentError(absl::StrCat("more than ", text::Grouped(kMaxPackedFiles),
                                                 " files; expected at most ",
                                                 text::Grouped(kMaxPackedFiles)));
}

absl::Status TooManyBytes() {
  return absl::InvalidArgumentError(
      absl::StrCat("files of more than ", text::Grouped(kMaxPackedBytes),
                   " bytes in all; expected at most ", text::Grouped(kMaxPackedBytes)));
}

absl::Status DiskError(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

// Reads an open file, at most `most` bytes and one more.
absl::StatusOr<std::string> ReadFile(int file, const std::string& path, uint64_t most) {
  std::string bytes;
  while (bytes.size() <= most) {
    char buffer[64 << 10];
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError(path, errno);
    if (got == 0) break;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return bytes;
}

// Reads the regular files of a walk, at most kMaxPackedFiles and kMaxPackedBytes.
struct FoundFiles {
  absl::Status Add(const FolderEntry& entry) {
    if (!S_ISREG(entry.info.st_mode)) return absl::OkStatus();
    const process::FileDescriptor file(
        openat(entry.folder, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!file.open() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return absl::OkStatus();  // gone, or replaced
    }
    if (files.size() == kMaxPackedFiles) return TooManyFiles();
    ASSIGN_OR_RETURN(std::string content,
                     ReadFile(file.get(), entry.path, kMaxPackedBytes - bytes));
    bytes += content.size();
    if (bytes > kMaxPackedBytes) return TooManyBytes();
    contents.push_back(std::move(content));
    files.push_back({entry.path, contents.back(), (info.st_mode & S_IXUSR) != 0});
    return absl::OkStatus();
  }

  uint64_t bytes = 0;
  std::list<std::string> contents;  // of the files, which point into it
  std::vector<PackedFile> files;
};

// Creates the folders of `path` below the open folder `parent`, and writes the file in the last.
absl::Status WriteBelow(int folder, const PackedFile& file) {
  process::FileDescriptor held;
  int parent = folder;
  std::vector<std::string> parts = absl::StrSplit(file.path, '/');
  const std::string name = std::move(parts.back());
  parts.pop_back();
  for (const std::string& part : parts) {
    if (mkdirat(parent, part.c_str(), 0755) != 0 && errno != EEXIST) {
      return DiskError(file.path, errno);
    }
    process::FileDescriptor next(
        openat(parent, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.open()) return DiskError(file.path, errno);
    held = std::move(next);
    parent = held.get();
  }
  const mode_t mode = file.executable ? 0755 : 0644;
  process::FileDescriptor out(
      openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!out.open() || !process::WriteAll(out.get(), file.bytes) || !out.Close()) {
    return DiskError(file.path, errno);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPackedPath(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  const bool inside = std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
  const bool printable = text::IsUtf8(path) && !text::HasControlCharacter(path);
  if (inside && printable && path.size() <= kMaxPathBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(path),
      " can't be the path of a packed file; expected a relative path without . and .., of at most ",
      kMaxPathBytes, " printable bytes"));
}

absl::StatusOr<std::string> PackFiles(std::vector<PackedFile> files) {
  if (files.size() > kMaxPackedFiles) return TooManyFiles();
  std::sort(files.begin(), files.end(),
            [](const PackedFile& a, const PackedFile& b) { return a.path < b.path; });
  std::vector<TensorView> tensors;
  std::vector<std::string> executables;
  uint64_t bytes = 0;
  for (const PackedFile& file : files) {
    RETURN_IF_ERROR(CheckPackedPath(file.path));
    bytes += file.bytes.size();
    if (bytes > kMaxPackedBytes) return TooManyBytes();
    tensors.push_back(
        {file.path, TensorType::kU8, {static_cast<int64_t>(file.bytes.size())}, file.bytes});
    if (file.executable) executables.push_back(file.path);
  }
  return WriteSafetensors(tensors, {{kDatasetKindKey, kFileSetName},
                                    {kExecutableKey, absl::StrJoin(executables, "\n")}});
}

absl::StatusOr<std::string> PackFolders(const std::string& folder,
                                        const std::vector<std::string>& names) {
  const process::FileDescriptor root(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.open()) return DiskError(folder, errno);
  FoundFiles found;
  for (const std::string& name : names) {
    RETURN_IF_ERROR(WalkFolder(root.get(), name,
                               [&found](const FolderEntry& entry) { return found.Add(entry); }));
  }
  return PackFiles(std::move(found.files));
}

absl::StatusOr<std::vector<PackedFile>> ReadFileSet(absl::string_view packed) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(packed));
  const auto kind = file.metadata.find(kDatasetKindKey);
  if (kind == file.metadata.end() || kind->second != kFileSetName) {
    return absl::InvalidArgumentError(absl::StrCat("it isn't a file set; expected ",
                                                   kDatasetKindKey, " to be ", kFileSetName,
                                                   " in its metadata"));
  }
  if (file.tensors.size() > kMaxPackedFiles) return TooManyFiles();
  std::set<absl::string_view> executables;
  if (const auto listed = file.metadata.find(kExecutableKey); listed != file.metadata.end()) {
    for (const absl::string_view path : absl::StrSplit(listed->second, '\n')) {
      executables.insert(path);
    }
  }
  std::vector<PackedFile> files;
  std::set<std::string> folders, paths;
  for (const TensorView& tensor : file.tensors) {
    RETURN_IF_ERROR(CheckPackedPath(tensor.name));
    if (tensor.type != TensorType::kU8 || tensor.shape.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(tensor.name), " isn't stored as bytes"));
    }
    paths.insert(tensor.name);
    for (size_t slash = tensor.name.find('/'); slash != std::string::npos;
         slash = tensor.name.find('/', slash + 1)) {
      folders.insert(tensor.name.substr(0, slash));
    }
    files.push_back({tensor.name, tensor.bytes, executables.count(tensor.name) > 0});
  }
  for (const std::string& path : paths) {
    if (folders.count(path) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(Quoted(path), " is a file and a folder"));
  }
  return files;
}

absl::Status UnpackFiles(absl::string_view packed, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto files, ReadFileSet(packed));
  const process::FileDescriptor root(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.open()) return DiskError(folder, errno);
  for (const PackedFile& file : files) RETURN_IF_ERROR(WriteBelow(root.get(), file));
  return absl::OkStatus();
}

}  // namespace ablate
