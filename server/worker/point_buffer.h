// What a run reports between two flushes: its points, as the columns of a row group, and what it
// took of its lane.
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

// What a run has taken of its lane since it came there.
struct LaneUse {
  absl::Duration busy;
  absl::Duration contended;  // of that, while others had the core
  uint64_t tokens = 0;       // trained on
};

// How long the calling thread, since it began, was ready to run while others had the core. Zero
// where the kernel doesn't count it; what a hypervisor gives to other machines is never counted.
absl::Duration RunQueueDelay();

// The same, out of the text of a schedstat file: nanoseconds run, nanoseconds waited, time slices.
absl::Duration ParseRunQueueDelay(absl::string_view schedstat);

// Not thread-safe.
class PointBuffer {
 public:
  // Points of a key must come with ascending steps.
  void Add(const std::vector<engine::Point>& points);
  bool empty() const { return columns_.empty(); }
  // What was added since the last Take and what the lane gave since then: `step` updates are made,
  // `use` is of all of them.
  v1::Points Take(uint32_t step, const LaneUse& use);

 private:
  std::map<std::string, v1::Column> columns_;
  // Of all that was taken:
  uint64_t busy_us_ = 0;
  uint64_t contended_us_ = 0;
  uint64_t tokens_ = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_POINT_BUFFER_H_
