// The Models service.
#include "server/service/models.h"

#include "ablate/v1/model.grpc.pb.h"
#include "server/service/generate.h"

namespace ablate::service {
namespace {

class ModelsService final : public v1::Models::CallbackService {
 public:
  explicit ModelsService(Backend* backend) : backend_(backend) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override {
    return GenerateReactor::Start(backend_, context, request);
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeModelsService(Backend* backend) {
  return std::make_unique<ModelsService>(backend);
}

}  // namespace ablate::service
