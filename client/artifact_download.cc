// Fetches an artifact into a file, through breaks of the stream.
#include "client/artifact_download.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/sha256.h"

namespace ablate::client {
namespace {

constexpr int kTriesWithoutProgress = 5;
constexpr absl::Duration kPause = absl::Milliseconds(500);

absl::Status SystemError(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
}

// A file that is removed again unless it is kept under its final name.
class PartFile {
 public:
  explicit PartFile(std::string path)
      : path_(std::move(path)), part_(absl::StrCat(path_, ".", getpid(), ".part")) {}
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile() {
    if (file_ < 0) return;
    close(file_);
    unlink(part_.c_str());
  }

  absl::Status Open() {
    file_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return file_ < 0 ? SystemError(part_) : absl::OkStatus();
  }

  absl::Status Write(absl::string_view data) {
    while (!data.empty()) {
      const ssize_t written = write(file_, data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError(part_);
      data.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Keep() {
    if (fsync(file_) != 0) return SystemError(part_);
    if (std::rename(part_.c_str(), path_.c_str()) != 0) return SystemError(path_);
    close(std::exchange(file_, -1));
    return absl::OkStatus();
  }

 private:
  std::string path_;
  std::string part_;
  int file_ = -1;
};

}  // namespace

absl::Status Download(Connection* connection, const v1::Artifact& artifact, const std::string& path,
                      const Sleep& sleep) {
  PartFile file(path);
  if (const absl::Status status = file.Open(); !status.ok()) return status;
  storage::Sha256 hash;
  uint64_t received = 0;
  for (int tries = 0; received < artifact.bytes() || tries == 0; ++tries) {
    if (tries > 0) sleep(kPause);
    v1::ReadArtifactRequest request;
    request.set_name(artifact.name());
    request.set_offset(received);
    const uint64_t before = received;
    absl::Status status = connection->ReadArtifact(request, [&](const v1::ArtifactChunk& chunk) {
      hash.Add(chunk.data());
      received += chunk.data().size();
      return file.Write(chunk.data());
    });
    if (received > before) tries = 0;
    const bool may_retry = status.ok() || absl::IsUnavailable(status);
    if (!may_retry || (tries >= kTriesWithoutProgress && received < artifact.bytes())) {
      return status.ok() ? absl::DataLossError("the server sends less than the artifact's size")
                         : status;
    }
  }
  if (received != artifact.bytes() || hash.Hex() != artifact.sha256()) {
    return absl::DataLossError(absl::StrCat(
        artifact.name(), " arrived damaged: size or SHA-256 differ from the server's"));
  }
  return file.Keep();
}

}  // namespace ablate::client
