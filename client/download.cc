#include "client/download.h"

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace ablate::client {
namespace {

constexpr int kMaxTriesWithoutProgress = 5;
constexpr absl::Duration kResumeDelay = absl::Milliseconds(500);

}  // namespace

absl::Status Receive(const RemoteFile& remote, const ReadFrom& read, const Sleep& sleep,
                     const OnMessage<std::string>& take) {
  Sha256 hash;
  uint64_t received = 0;
  for (int tries = 0; received < remote.bytes || tries == 0; ++tries) {
    if (tries > 0) sleep(kResumeDelay);
    const uint64_t before = received;
    absl::Status status = read(received, [&](const std::string& data) {
      hash.Add(data);
      received += data.size();
      return take(data);
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
  return absl::OkStatus();
}

absl::Status Download(const RemoteFile& remote, const Output& output, const ReadFrom& read,
                      const Sleep& sleep) {
  PartFile file(output);
  RETURN_IF_ERROR(file.Open());
  const absl::Status received =
      Receive(remote, read, sleep, [&](const std::string& data) { return file.Write(data); });
  return received.ok() ? file.Commit() : received;
}

RemoteFile RemoteOf(const v1::Dataset& dataset) {
  return {dataset.name(), dataset.bytes(), dataset.sha256()};
}

RemoteFile RemoteOf(const v1::Artifact& artifact) {
  return {artifact.name(), artifact.bytes(), artifact.sha256()};
}

ReadFrom ReadArtifact(Connection* connection, const v1::Artifact& artifact) {
  return
      [connection, name = artifact.name()](uint64_t offset, const OnMessage<std::string>& on_data) {
        v1::ReadArtifactRequest request;
        request.set_name(name);
        request.set_offset(offset);
        return connection->Stream(kReadArtifact, request, [&](const v1::ArtifactChunk& chunk) {
          return on_data(chunk.data());
        });
      };
}

ReadFrom ReadDataset(Connection* connection, const v1::Dataset& dataset) {
  return [connection, name = dataset.name()](uint64_t offset,
                                             const OnMessage<std::string>& on_data) {
    v1::DownloadDatasetRequest request;
    request.set_name(name);
    request.set_offset(offset);
    return connection->Stream(kDownloadDataset, request,
                              [&](const v1::DatasetChunk& chunk) { return on_data(chunk.data()); });
  };
}

absl::StatusOr<std::string> FetchTokenizer(Connection* connection, const v1::Dataset& dataset,
                                           const Sleep& sleep) {
  if (dataset.kind() != v1::DatasetKind::tokenizer && dataset.kind() != v1::DatasetKind::tokens) {
    const bool tagged = dataset.kind() == v1::DatasetKind::tagged;
    const bool files = dataset.kind() == v1::DatasetKind::files;
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name(), " is a ",
                     files    ? "set of files"
                     : tagged ? "file of tagged sentences"
                              : "text",
                     "; expected a tokenizer, or tokens with theirs"));
  }
  if (dataset.bytes() > kMaxDatasetFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name(), " has ", text::Grouped(dataset.bytes()),
                     " bytes; expected at most ", text::Grouped(kMaxDatasetFileBytes)));
  }
  std::string bytes;
  const auto take = [&](const std::string& data) {
    if (data.size() > dataset.bytes() - bytes.size()) {
      return absl::DataLossError(absl::StrCat(dataset.name(), " is longer than its size"));
    }
    bytes += data;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Receive(RemoteOf(dataset), ReadDataset(connection, dataset), sleep, take));
  return bytes;
}

}  // namespace ablate::client
