// A connection to the server, and how long to wait before it is tried again.
#ifndef ABLATE_SERVER_WORKER_CHANNEL_H_
#define ABLATE_SERVER_WORKER_CHANNEL_H_

#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/join/channel.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace ablate::worker {

// A connection of its own (nothing is shared with other channels to the same address), which is
// tried again at most a second after it failed. To a server elsewhere it notices within a minute
// that nobody is there any more.
std::shared_ptr<grpc::Channel> OpenChannel(const join::ServerAddress& server);

// How a call ended; the codes are the same.
absl::Status FromGrpc(const grpc::Status& status);

// Growing waits with jitter between attempts to reach the server. Not thread-safe.
class Backoff {
 public:
  // Waits grow by half from `first` to `longest`.
  Backoff(absl::Duration first, absl::Duration longest);
  // Half to all of the current wait at random, so that workers of one server spread out.
  absl::Duration Next();
  void Reset() { wait_ = first_; }

 private:
  absl::Duration first_, longest_, wait_;
  std::minstd_rand random_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_CHANNEL_H_
