// WriteBlob: a worker publishes a checkpoint or a resume state.
#ifndef ABLATE_SERVER_SERVICE_WRITE_BLOB_H_
#define ABLATE_SERVER_SERVICE_WRITE_BLOB_H_

#include <memory>
#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/service/blob_pins.h"
#include "server/service/push_stream.h"
#include "storage/store.h"

namespace ablate::service {

// NOT_FOUND unless the lease is alive: only who trains may read and write.
absl::Status CheckLease(storage::Store* store, const std::string& lease);

class WriteBlobReactor final : public PushStream<worker::v1::WriteBlobRequest> {
 public:
  // Everything outlives the call.
  WriteBlobReactor(const StreamCall& call, storage::Store* store, BlobPins* pins,
                   worker::v1::WriteBlobResponse* response);

 private:
  absl::StatusOr<bool> Take(const worker::v1::WriteBlobRequest& request) override;
  absl::Status Complete() override;
  absl::StatusOr<bool> Open(const worker::v1::WriteBlobRequest& request);
  // Lets go of what leases left that have no runs any more.
  absl::Status Prune();

  storage::Store* const store_;
  BlobPins* const pins_;
  worker::v1::WriteBlobResponse* const response_;
  bool open_ = false;
  std::string lease_;
  std::string sha256_;
  std::unique_ptr<storage::Blobs::Writer> writer_;  // null if the blob is there already
  std::shared_ptr<storage::Blobs::Pin> pin_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WRITE_BLOB_H_
