// The WorkerChannel service: the side of the server that workers see.
#ifndef ABLATE_SERVER_SERVICE_WORKER_CHANNEL_H_
#define ABLATE_SERVER_SERVICE_WORKER_CHANNEL_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "server/service/attach_stream.h"

namespace ablate::service {

// `backend` must outlive it.
std::unique_ptr<grpc::Service> MakeWorkerChannelService(WorkerBackend* backend);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WORKER_CHANNEL_H_
