#include <memory>
#include <string>

#include "ablate/v1/model.pb.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/rpc/identity.h"
#include "server/service/changes.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr absl::string_view kModelList = "models";

absl::Status GetModel(const Backend&, const lookup::View& view, const v1::GetModelRequest& request,
                      v1::Model* response) {
  ASSIGN_OR_RETURN(const auto record, lookup::FindModel(view, request.name(), "name"));
  ASSIGN_OR_RETURN(*response, ToProto(record));
  return absl::OkStatus();
}

absl::Status ListModels(const Backend&, const lookup::View& view,
                        const v1::ListModelsRequest& request, v1::ListModelsResponse* response) {
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, kModelList, lookup::kDefaultPage));
  ASSIGN_OR_RETURN(auto records, view.store->ListModels(view.viewer, page.position, page.size + 1));
  if (records.size() > page.size) {
    records.pop_back();
    response->set_next_page_token(lookup::PageToken(kModelList, records.back().name));
  }
  for (const storage::ModelRecord& record : records) {
    ASSIGN_OR_RETURN(*response->add_models(), ToProto(record));
  }
  return absl::OkStatus();
}

absl::Status DeleteModel(Backend& backend, const storage::Caller& caller,
                         const v1::DeleteModelRequest& request, std::string* resource,
                         google::protobuf::Empty*) {
  const lookup::View view = backend.ViewOf(caller);
  ASSIGN_OR_RETURN(const auto name, lookup::FindWholeModel(view, request.name(), "name"));
  *resource = lookup::ModelName(name);
  // By exactly this name, which the caller sees.
  ASSIGN_OR_RETURN(const auto model, view.store->FindModel(storage::kServer, name));
  RETURN_IF_ERROR(rpc::CheckMayChange(caller, model.owner, *resource));
  return backend.store->DeleteModel(name);
}

}  // namespace

std::unique_ptr<grpc::Service> MakeModelsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Models", backend);
  methods->Stream(StartGenerate);
  methods->Upload(StartUploadModel);
  methods->Answer(GetModel);
  methods->Answer(ListModels);
  methods->Change(DeleteModel);
  methods->Stream(StartExportModel);
  return methods;
}

}  // namespace ablate::service
