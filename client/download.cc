#include "client/download.h"

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace ablate::client {
namespace {

constexpr int kMaxTriesWithoutProgress = 5;
constexpr absl::Duration kResumeDelay = absl::Milliseconds(500);

}  // namespace

absl::Status Download(const RemoteFile& remote, const std::string& path, IfExists if_exists,
                      const ReadFrom& read, const Sleep& sleep) {
  PartFile file(path, if_exists);
  if (const absl::Status status = file.Open(); !status.ok()) return status;
  Sha256 hash;
  uint64_t received = 0;
  for (int tries = 0; received < remote.bytes || tries == 0; ++tries) {
    if (tries > 0) sleep(kResumeDelay);
    const uint64_t before = received;
    absl::Status status = read(received, [&](const std::string& data) {
      hash.Add(data);
      received += data.size();
      return file.Write(data);
    });
    if (received > before) tries = 0;
    const bool may_retry = status.ok() || absl::IsUnavailable(status);
    if (!may_retry || (tries >= kMaxTriesWithoutProgress && received < remote.bytes)) {
      return status.ok()
                 ? absl::DataLossError("the server sent fewer bytes than the file has; try again")
                 : status;
    }
  }
  if (received != remote.bytes || hash.Hex() != remote.sha256) {
    return absl::DataLossError(absl::StrCat(
        remote.name, " arrived damaged: size or SHA-256 differ from the server's; try again"));
  }
  return file.Commit();
}

}  // namespace ablate::client
