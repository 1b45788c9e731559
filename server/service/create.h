// CreateExperiment: from a request to queued runs, or to everything that is wrong with it.
#ifndef ABLATE_SERVER_SERVICE_CREATE_H_
#define ABLATE_SERVER_SERVICE_CREATE_H_

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/backend.h"

namespace ablate::service {

// INVALID_ARGUMENT lists every problem; with validate_only they are in the response and nothing is
// changed. RESOURCE_EXHAUSTED if the disk has no room for what the runs would leave. A request that
// was accepted before is none of these: it gets what is stored of the first answer. ALREADY_EXISTS
// if request_id was used for another request. Uses `request` up.
absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(const Backend& backend,
                                                              v1::CreateExperimentRequest* request);

// Answers a call whose request is bytes yet: as a message it can be thirty times as large, so its
// size is looked at before it is read, and only a few are read at once. As CreateExperiment;
// RESOURCE_EXHAUSTED also while too many bytes of such requests are here. `request` and `response`
// live until the call is finished.
grpc::ServerUnaryReactor* AnswerCreate(Backend* backend, grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CREATE_H_
