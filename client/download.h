// Downloads files that a server sends in chunks, from any offset.
#ifndef ABLATE_CLIENT_DOWNLOAD_H_
#define ABLATE_CLIENT_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "ablate/v1/artifact.pb.h"
#include "ablate/v1/dataset.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/output/part_file.h"

namespace ablate::client {

struct RemoteFile {
  std::string name;  // as messages say it
  uint64_t bytes = 0;
  std::string sha256;  // in hex
};

// Passes the bytes from `offset` on to `on_data`. An error of `on_data` ends it and is returned.
using ReadFrom =
    std::function<absl::Status(uint64_t offset, const OnMessage<std::string>& on_data)>;

// Passes the whole file to `take` in pieces. A stream that breaks is continued from its last byte
// as long as tries bring bytes; `sleep` is called before each try. DATA_LOSS if size or hash don't
// match; errors of `take` otherwise.
absl::Status Receive(const RemoteFile& remote, const ReadFrom& read, const Sleep& sleep,
                     const OnMessage<std::string>& take);

// Writes the file under a temporary name and renames it once size and hash are right, so that
// its path is either the whole file or unchanged. Continues and fails as Receive.
absl::Status Download(const RemoteFile& remote, const Output& output, const ReadFrom& read,
                      const Sleep& sleep);

// Return how a data set or an artifact is downloaded, and the functions that read them.
RemoteFile RemoteOf(const v1::Dataset& dataset);
RemoteFile RemoteOf(const v1::Artifact& artifact);
ReadFrom ReadDataset(Connection* connection, const v1::Dataset& dataset);
ReadFrom ReadArtifact(Connection* connection, const v1::Artifact& artifact);

// Downloads a data set's file to memory: a tokenizer, or tokens with theirs. INVALID_ARGUMENT if
// the data set is of another kind, or too large; other errors as Receive.
absl::StatusOr<std::string> FetchTokenizer(Connection* connection, const v1::Dataset& dataset,
                                           const Sleep& sleep);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_DOWNLOAD_H_
