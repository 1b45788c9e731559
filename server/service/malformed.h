// Says what is wrong when a request's bytes are no message.
#ifndef ABLATE_SERVER_SERVICE_MALFORMED_H_
#define ABLATE_SERVER_SERVICE_MALFORMED_H_

#include <memory>

#include "absl/status/status.h"
#include "grpcpp/support/server_interceptor.h"

namespace ablate::service {

// The error of a request whose bytes are no message.
absl::Status MalformedRequest();

// gRPC's callback API answers a request that it can't parse as if the method did not exist, with
// UNIMPLEMENTED and no message; this makes it INVALID_ARGUMENT with a sentence.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ExplainMalformedRequests();

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_MALFORMED_H_
