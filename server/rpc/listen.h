// Builds one gRPC server on one unix socket.
#ifndef ABLATE_SERVER_RPC_LISTEN_H_
#define ABLATE_SERVER_RPC_LISTEN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"

namespace ablate::rpc {

// Serves `services` (which must outlive the server), health and reflection on `address`,
// "unix:PATH" (a URI: %XX is a byte of the path). A socket that an earlier process left there is
// removed: the caller holds the lock of the data folder, so nobody else listens. INVALID_ARGUMENT
// for an address that can't be; FAILED_PRECONDITION if PATH is no socket; UNAVAILABLE if listening
// fails. Not from two threads at once.
absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(
    const std::string& address, int max_message_bytes,
    const std::vector<std::unique_ptr<grpc::Service>>& services);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_LISTEN_H_
