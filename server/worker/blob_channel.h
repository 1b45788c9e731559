// Transfers blobs to and from the server, over a separate connection from the event stream, or
// reads them from the server's folder.
#ifndef ABLATE_SERVER_WORKER_BLOB_CHANNEL_H_
#define ABLATE_SERVER_WORKER_BLOB_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/shared_bytes.h"
#include "proto/join/channel.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

struct BlobRetries {
  absl::Duration first_wait = absl::Milliseconds(20);
  absl::Duration longest_wait = absl::Seconds(1);
  int max_server_errors = 30;  // INTERNAL or UNKNOWN in a row: about twenty seconds
};

// Reads and writes blobs. Thread-safe. Both calls block their thread. They retry with growing waits
// while the server is unreachable or its disk is full, and for a limited time while it fails. They
// return on success, on an error that a retry can't change, or with CANCELLED once the run is
// abandoned. They never return UNAVAILABLE.
class BlobChannel {
 public:
  // `folder` is that of the server's blobs, if this process may read it: a blob is then its file
  // in memory. Empty: by the connection only.
  static std::unique_ptr<BlobChannel> Make(const join::ServerAddress& server,
                                           const std::string& folder = "",
                                           BlobRetries retries = {});
  virtual ~BlobChannel() = default;

  // Returns a blob's bytes, checked against its hash; DATA_LOSS if they differ repeatedly. `grant`
  // is the ID of the lease or analysis that may read it.
  virtual absl::StatusOr<SharedBytes> Read(const std::string& grant, const std::string& sha256,
                                           RunControl& control) = 0;
  // Publishes the bytes. Returns their hash once they are on the server's disk.
  virtual absl::StatusOr<std::string> Write(const std::string& lease, absl::string_view bytes,
                                            RunControl& control) = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_BLOB_CHANNEL_H_
