// A connection to the server.
#ifndef ABLATE_SERVER_WORKER_CHANNEL_H_
#define ABLATE_SERVER_WORKER_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace ablate::worker {

// A connection of its own (nothing is shared with other channels to the same address), which is
// tried again at most a second after it failed.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& server);

// How a call ended; the codes are the same.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_CHANNEL_H_
