// Opens a connection to the server, and computes the waits between attempts.
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

// Opens a connection that shares nothing with other channels to the same address. After a failure
// it reconnects within a second. A remote server that has disappeared is noticed within a minute.
std::shared_ptr<grpc::Channel> OpenChannel(const join::ServerAddress& server);

// Returns the status of a call; the codes are the same.
absl::Status FromGrpc(const grpc::Status& status);

// Computes growing waits with jitter between attempts to reach the server. Not thread-safe.
class Backoff {
 public:
  // Waits grow by half from `first` to `longest`.
  Backoff(absl::Duration first, absl::Duration longest);
  // Returns a random half to all of the current wait, so that workers of one server spread out.
  absl::Duration Next();
  void Reset() { wait_ = first_; }

 private:
  absl::Duration first_, longest_, wait_;
  std::minstd_rand random_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_CHANNEL_H_
