// The Models service.
#ifndef ABLATE_SERVER_SERVICE_MODELS_H_
#define ABLATE_SERVER_SERVICE_MODELS_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "server/service/backend.h"

namespace ablate::service {

// `backend` must outlive it.
std::unique_ptr<grpc::Service> MakeModelsService(Backend* backend);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_MODELS_H_
