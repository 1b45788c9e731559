// UploadDataset: a text, checked and kept under its hash.
#ifndef ABLATE_SERVER_SERVICE_UPLOAD_DATASET_H_
#define ABLATE_SERVER_SERVICE_UPLOAD_DATASET_H_

#include <memory>
#include <string>

#include "ablate/v1/dataset.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/task.h"
#include "server/service/backend.h"
#include "server/service/push_stream.h"
#include "storage/blobs.h"

namespace ablate::service {

class UploadDatasetReactor final : public PushStream<v1::UploadDatasetRequest> {
 public:
  // `context` and `response` outlive the call.
  UploadDatasetReactor(Backend* backend, grpc::CallbackServerContext* context,
                       v1::Dataset* response);

 private:
  absl::StatusOr<bool> Take(const v1::UploadDatasetRequest& request) override;
  absl::Status Complete() override;
  // False if the server has the bytes already.
  absl::StatusOr<bool> Open(const v1::UploadDatasetRequest& request);
  absl::Status Append(const std::string& data);
  absl::Status Record();
  // What the text has, read in pieces: several large ones may arrive at once.
  absl::StatusOr<engine::DocumentFacts> Inspect();

  Backend* const backend_;
  v1::Dataset* const response_;
  bool open_ = false;
  std::string display_name_;
  std::string sha256_;
  storage::Blobs* blobs_ = nullptr;
  std::unique_ptr<storage::Blobs::Writer> writer_;  // null if the server has the bytes
  std::shared_ptr<storage::Blobs::Pin> pin_;        // until a row names the blob
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_UPLOAD_DATASET_H_
