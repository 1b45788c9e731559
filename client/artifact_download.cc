// Fetches an artifact into a file, through breaks of the stream.
#include "client/artifact_download.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/part_file.h"
#include "client/sha256.h"

namespace ablate::client {
namespace {

constexpr int kTriesWithoutProgress = 5;
constexpr absl::Duration kPause = absl::Milliseconds(500);

}  // namespace

absl::Status Download(Connection* connection, const v1::Artifact& artifact, const std::string& path,
                      const Sleep& sleep) {
  PartFile file(path);
  if (const absl::Status status = file.Open(); !status.ok()) return status;
  Sha256 hash;
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
