#include "client/file_set_folder.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/file_set.h"
#include "base/status_macros.h"

namespace ablate::client {
namespace {

constexpr char kMarkFile[] = ".ablate";
constexpr uint64_t kMaxHeaderBytes = 64 << 20;  // paths, lengths and the rest

absl::Status WriteFiles(const std::vector<PackedFile>& files, const std::string& prefix,
                        PartFolder* folder) {
  RETURN_IF_ERROR(folder->Write(kMarkFile, "written by ablate\n"));
  for (const PackedFile& file : files) {
    const std::string path(absl::StripPrefix(file.path, prefix));
    if (path == kMarkFile) continue;
    RETURN_IF_ERROR(folder->Write(path, file.bytes));
    if (!file.executable) continue;
    RETURN_IF_ERROR(folder->MakeExecutable(path));
  }
  return folder->Commit();
}

}  // namespace

absl::StatusOr<std::string> ReceiveFileSet(const RemoteFile& remote, const ReadFrom& read,
                                           const Sleep& sleep) {
  if (remote.bytes > kMaxPackedBytes + kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(remote.name, " has ", text::Grouped(remote.bytes),
                     " bytes; expected a file set of at most ", text::Grouped(kMaxPackedBytes)));
  }
  std::string packed;
  RETURN_IF_ERROR(Receive(remote, read, sleep, [&](const std::string& data) {
    if (data.size() > remote.bytes - packed.size()) {
      return absl::DataLossError(absl::StrCat(remote.name, " is longer than its size"));
    }
    packed += data;
    return absl::OkStatus();
  }));
  return packed;
}

absl::StatusOr<size_t> WriteFileSet(const RemoteFile& remote, const ReadFrom& read,
                                    const Sleep& sleep, const std::string& prefix,
                                    const Output& output) {
  PartFolder folder(
      output, [](const std::string&) { return true; },
      [](const std::string& path) {
        return !process::ReadWholeFile(absl::StrCat(path, "/", kMarkFile)).empty();
      });
  RETURN_IF_ERROR(folder.Open());
  ASSIGN_OR_RETURN(const std::string packed, ReceiveFileSet(remote, read, sleep));
  ASSIGN_OR_RETURN(const std::vector<PackedFile> files, ReadFileSet(packed));
  RETURN_IF_ERROR(WriteFiles(files, prefix, &folder));
  return files.size();
}

}  // namespace ablate::client
