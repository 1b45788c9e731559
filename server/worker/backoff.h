// Growing waits with jitter between attempts to reach the server.
#ifndef ABLATE_SERVER_WORKER_BACKOFF_H_
#define ABLATE_SERVER_WORKER_BACKOFF_H_

#include <random>

#include "absl/time/time.h"

namespace ablate::worker {

// Not thread-safe.
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

#endif  // ABLATE_SERVER_WORKER_BACKOFF_H_
