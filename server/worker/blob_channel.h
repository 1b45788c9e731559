// Blobs to and from the server, over a connection apart from the stream of events.
#ifndef ABLATE_SERVER_WORKER_BLOB_CHANNEL_H_
#define ABLATE_SERVER_WORKER_BLOB_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/join/channel.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

struct BlobRetries {
  absl::Duration first_wait = absl::Milliseconds(20);
  absl::Duration longest_wait = absl::Seconds(1);
  int max_server_errors = 30;  // INTERNAL or UNKNOWN in a row: some twenty seconds
};

// Thread-safe. Both calls block their thread. They try again, with a growing wait, for as long as
// the server is away or has no room on its disk, and for a while when it fails; an end comes
// with success, a refusal that repeating can't change, or CANCELLED once the run is abandoned. They
// never return UNAVAILABLE.
class BlobChannel {
 public:
  static std::unique_ptr<BlobChannel> Make(const join::ServerAddress& server,
                                           BlobRetries retries = {});
  virtual ~BlobChannel() = default;

  // A blob's bytes, checked against its hash: DATA_LOSS if they keep differing. `grant` is the id
  // of the lease, or of the analysis, that may read it.
  virtual absl::StatusOr<std::string> Read(const std::string& grant, const std::string& sha256,
                                           RunControl& control) = 0;
  // Publishes the bytes and returns their hash once they are on the server's disk.
  virtual absl::StatusOr<std::string> Write(const std::string& lease, absl::string_view bytes,
                                            RunControl& control) = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_BLOB_CHANNEL_H_
