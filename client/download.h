// Files that a server sends in chunks, from any offset on.
#ifndef ABLATE_CLIENT_DOWNLOAD_H_
#define ABLATE_CLIENT_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/connection.h"
#include "client/output/part_file.h"

namespace ablate::client {

struct RemoteFile {
  std::string name;  // as messages say it
  uint64_t bytes = 0;
  std::string sha256;  // in hex
};

// Gives the bytes from `offset` on to `on_data`, whose error ends it and is its result.
using ReadFrom =
    std::function<absl::Status(uint64_t offset, const OnMessage<std::string>& on_data)>;

// Writes the file beside `path` and renames it when size and hash are right: `path` is either the
// whole file or what it was before. A stream that breaks is read on from where it broke, as long as
// something comes; `sleep` is called before each new try. DATA_LOSS if what arrives is not the
// file.
absl::Status Download(const RemoteFile& remote, const std::string& path, IfExists if_exists,
                      const ReadFrom& read, const Sleep& sleep);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_DOWNLOAD_H_
