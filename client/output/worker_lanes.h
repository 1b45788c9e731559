// Counts which runs of a worker have lanes, by the worker's rule.
#ifndef ABLATE_CLIENT_OUTPUT_WORKER_LANES_H_
#define ABLATE_CLIENT_OUTPUT_WORKER_LANES_H_

#include <algorithm>
#include <cstdint>

#include "ablate/v1/worker.pb.h"

namespace ablate::client {

// Lanes take a worker's runs in the order in which it lists them. A run of several threads takes as
// many lanes, at most all, and isn't overtaken.
class WorkerLanes {
 public:
  // A worker that doesn't train now has none.
  explicit WorkerLanes(const v1::Worker& worker)
      : count_(worker.role() == v1::WorkerRole::analysis || worker.state() == v1::WorkerState::AWAY
                   ? 0
                   : worker.lanes()),
        full_(count_ == 0) {}

  uint32_t count() const { return count_; }
  uint32_t taken() const { return taken_; }

  // Gives the next run its lanes; returns false if it and all later ones wait.
  bool Take(uint32_t threads) {
    const uint32_t wanted = std::clamp(threads, 1U, std::max(count_, 1U));
    full_ = full_ || wanted > count_ - taken_;
    if (!full_) taken_ += wanted;
    return !full_;
  }

 private:
  const uint32_t count_;
  uint32_t taken_ = 0;
  bool full_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_WORKER_LANES_H_
