// Packs a folder's files into one file, and unpacks it: the files of a program, its state and its
// output. The same files give the same bytes, because no times and owners are kept.
#ifndef ABLATE_BASE_FILE_SET_H_
#define ABLATE_BASE_FILE_SET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate {

inline constexpr size_t kMaxPackedFiles = 10'000;
inline constexpr uint64_t kMaxPackedBytes = 250'000'000;

// One file; `bytes` points into memory owned elsewhere.
struct PackedFile {
  std::string path;  // relative, without "." and ".." as parts
  absl::string_view bytes;
  bool executable = false;
};

// Returns OK if the path may be unpacked: relative, of parts that are neither empty nor "." nor
// "..", in UTF-8 without control characters, at most 1,000 bytes.
absl::Status CheckPackedPath(absl::string_view path);

// Returns the bytes of a safetensors file with one tensor of bytes per file, sorted by path.
// INVALID_ARGUMENT if a path can't be unpacked or repeats, or if there are more than
// kMaxPackedFiles files or kMaxPackedBytes bytes.
absl::StatusOr<std::string> PackFiles(std::vector<PackedFile> files);

// Packs every regular file in the folders `names` of `folder`, and in the folders below them; paths
// begin with the names. Links and other special files are left out, also if others change the
// folders meanwhile. Errors as of PackFiles, before more than kMaxPackedBytes are held.
absl::StatusOr<std::string> PackFolders(const std::string& folder,
                                        const std::vector<std::string>& names);

// Returns the files, whose bytes point into `packed`. INVALID_ARGUMENT if it isn't a file set.
absl::StatusOr<std::vector<PackedFile>> ReadFileSet(absl::string_view packed);

// Writes the files below `folder`, which must exist. Follows no links in it. INVALID_ARGUMENT as of
// ReadFileSet; RESOURCE_EXHAUSTED or another error of the disk, with what was written left behind.
absl::Status UnpackFiles(absl::string_view packed, const std::string& folder);

}  // namespace ablate

#endif  // ABLATE_BASE_FILE_SET_H_
