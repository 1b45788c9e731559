#include "server/worker/channel.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

namespace ablate::worker {

std::shared_ptr<grpc::Channel> OpenChannel(const join::ServerAddress& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // gRPC's own waits start at a second; a server on this machine restarts faster.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // time limit of one attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return join::OpenChannel(server, arguments);
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

Backoff::Backoff(absl::Duration first, absl::Duration longest)
    : first_(first), longest_(longest), wait_(first), random_(std::random_device()()) {}

absl::Duration Backoff::Next() {
  const double share = std::uniform_real_distribution<double>(.5, 1)(random_);
  const absl::Duration result = wait_ * share;
  wait_ = std::min(wait_ * 1.5, longest_);
  return result;
}

}  // namespace ablate::worker
