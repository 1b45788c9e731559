// The Datasets service.
#include "server/service/datasets.h"

#include <string>

#include "ablate/v1/dataset.grpc.pb.h"
#include "server/service/call.h"
#include "server/service/convert.h"
#include "server/service/errors.h"
#include "server/service/names.h"
#include "server/service/page.h"
#include "server/service/upload_dataset.h"

namespace ablate::service {
namespace {

constexpr uint32_t kDefaultPage = 100;
constexpr absl::string_view kList = "datasets";

absl::Status Get(const Backend& backend, const v1::GetDatasetRequest& request,
                 v1::Dataset* response) {
  const auto dataset = FindDataset(backend.store, request.name(), "name");
  if (!dataset.ok()) return dataset.status();
  *response = ToProto(*dataset);
  return absl::OkStatus();
}

absl::Status List(const Backend& backend, const v1::ListDatasetsRequest& request,
                  v1::ListDatasetsResponse* response) {
  const auto size = PageSize(request.page_size(), kDefaultPage);
  if (!size.ok()) return size.status();
  const auto after = PagePosition(kList, request.page_token());
  if (!after.ok()) return after.status();
  auto records = backend.store->ListDatasets(*after, *size + 1);
  if (!records.ok()) return records.status();
  if (records->size() > *size) {
    records->pop_back();
    response->set_next_page_token(PageToken(kList, records->back().id));
  }
  for (const storage::DatasetRecord& record : *records) {
    *response->add_datasets() = ToProto(record);
  }
  return absl::OkStatus();
}

absl::Status Delete(const Backend& backend, const v1::DeleteDatasetRequest& request) {
  const auto id = FindWholeDataset(backend.store, request.name(), "name");
  if (!id.ok()) return id.status();
  const absl::Status deleted = backend.store->DeleteDataset(*id);
  return absl::IsFailedPrecondition(deleted) ? WithReason(deleted, "DATASET_IN_USE") : deleted;
}

class DatasetsService final : public v1::Datasets::CallbackService {
 public:
  explicit DatasetsService(Backend* backend) : backend_(backend) {}

  grpc::ServerReadReactor<v1::UploadDatasetRequest>* UploadDataset(
      grpc::CallbackServerContext* context, v1::Dataset* response) override {
    return (new UploadDatasetReactor(backend_, context, response))->Begin();
  }

  grpc::ServerUnaryReactor* GetDataset(grpc::CallbackServerContext* context,
                                       const v1::GetDatasetRequest* request,
                                       v1::Dataset* response) override {
    return Answer(backend_->pool, context,
                  [this, request, response] { return Get(*backend_, *request, response); });
  }

  grpc::ServerUnaryReactor* ListDatasets(grpc::CallbackServerContext* context,
                                         const v1::ListDatasetsRequest* request,
                                         v1::ListDatasetsResponse* response) override {
    return Answer(backend_->pool, context,
                  [this, request, response] { return List(*backend_, *request, response); });
  }

  grpc::ServerUnaryReactor* DeleteDataset(grpc::CallbackServerContext* context,
                                          const v1::DeleteDatasetRequest* request,
                                          google::protobuf::Empty*) override {
    return Answer(backend_->pool, context, [this, request] { return Delete(*backend_, *request); });
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDatasetsService(Backend* backend) {
  return std::make_unique<DatasetsService>(backend);
}

}  // namespace ablate::service
