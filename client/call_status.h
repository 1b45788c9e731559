// What came of a call to the server, in words for whoever made it.
#ifndef ABLATE_CLIENT_CALL_STATUS_H_
#define ABLATE_CLIENT_CALL_STATUS_H_

#include <string>

#include "absl/status/status.h"

namespace grpc {
class Status;
}

namespace ablate::client {

// With the server's message and field violations. UNAVAILABLE, if the server gave no answer, names
// its `address` and what to do.
absl::Status StatusOf(const grpc::Status& status, const std::string& address);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CALL_STATUS_H_
