// Points of one run between two flushes, as the columns of a row group.
#ifndef ABLATE_SERVER_WORKER_POINT_BUFFER_H_
#define ABLATE_SERVER_WORKER_POINT_BUFFER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/time/time.h"
#include "server/engine/trainer.h"

namespace ablate::worker {

// Not thread-safe.
class PointBuffer {
 public:
  // Points of a key must come with ascending steps.
  void Add(const std::vector<engine::Point>& points);
  bool empty() const { return columns_.empty(); }
  // What was added since the last Take, with `step` updates made and `busy` lane time spent since
  // the run began.
  v1::Points Take(uint32_t step, absl::Duration busy);

 private:
  std::map<std::string, v1::Column> columns_;
  uint64_t reported_us_ = 0;  // lane time in all that was taken
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_POINT_BUFFER_H_
