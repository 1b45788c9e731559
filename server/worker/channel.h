// A connection to the server.
#ifndef ABLATE_SERVER_WORKER_CHANNEL_H_
#define ABLATE_SERVER_WORKER_CHANNEL_H_

#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace ablate::worker {

// A connection of its own (nothing is shared with other channels to the same address), which is
// tried again at most a second after it failed.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& server);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_CHANNEL_H_
