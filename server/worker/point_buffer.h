// Collects what a run reports between two flushes: its points, as columns of a row group, and its
// use of the lane.
#ifndef ABLATE_SERVER_WORKER_POINT_BUFFER_H_
#define ABLATE_SERVER_WORKER_POINT_BUFFER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/engine/trainer.h"

namespace ablate::worker {

// A run's use of its lane since it started there.
struct LaneUse {
  absl::Duration busy;
  absl::Duration contended;  // part of it in which others had the core
  uint64_t tokens = 0;       // trained on
};

// Returns how long the calling thread, since its start, was ready to run while others had the core.
// Zero if the kernel doesn't count it. Time that a hypervisor gives to other machines is never
// counted.
absl::Duration RunQueueDelay();

// Returns the same from the text of a schedstat file: nanoseconds run, nanoseconds waited, time
// slices.
absl::Duration ParseRunQueueDelay(absl::string_view schedstat);

// Collects points by key. Not thread-safe.
class PointBuffer {
 public:
  // Adds points. Steps of a key must ascend.
  void Add(const std::vector<engine::Point>& points);
  bool empty() const { return columns_.empty(); }
  // Returns everything added since the last Take, and the lane use since then, given the number of
  // updates made (`step`) and the total `use`.
  v1::Points Take(uint32_t step, const LaneUse& use);

 private:
  std::map<std::string, v1::Column> columns_;
  // Totals already taken:
  uint64_t busy_us_ = 0;
  uint64_t contended_us_ = 0;
  uint64_t tokens_ = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_POINT_BUFFER_H_
