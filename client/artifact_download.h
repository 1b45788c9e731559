// Fetches an artifact into a file, through breaks of the stream.
#ifndef ABLATE_CLIENT_ARTIFACT_DOWNLOAD_H_
#define ABLATE_CLIENT_ARTIFACT_DOWNLOAD_H_

#include <string>

#include "ablate/v1/artifact.pb.h"
#include "absl/status/status.h"
#include "client/connection.h"

namespace ablate::client {

// Writes the artifact beside `path` and renames it when size and hash are right: `path` is either
// the whole artifact or what it was before. A stream that breaks is read on from where it broke, as
// long as something comes; `sleep` is called before each new try.
absl::Status Download(Connection* connection, const v1::Artifact& artifact, const std::string& path,
                      const Sleep& sleep);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_ARTIFACT_DOWNLOAD_H_
