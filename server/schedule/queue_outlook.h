// Says of each experiment in the queue why its next run waits, and about when it begins.
#ifndef ABLATE_SERVER_SCHEDULE_QUEUE_OUTLOOK_H_
#define ABLATE_SERVER_SCHEDULE_QUEUE_OUTLOOK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/pilots.h"
#include "server/schedule/scheduler.h"
#include "storage/lease_store.h"
#include "storage/records.h"

namespace ablate::schedule {

// Everything that the outlook depends on, as of one time.
struct QueueFacts {
  std::vector<storage::QueuedGroup> groups;
  std::map<std::string, double> step_micros;  // lane time of a step by shape, where measured
  storage::DeviceShares shares;
  std::vector<WorkerInfo> workers;
  std::vector<PendingPilot> pilots;
  MaxLanes max_lanes;   // may be null
  std::string stalled;  // why nothing proceeds, such as "disk full"; empty if it does
};

struct ExperimentOutlook {
  const storage::QueuedGroup* group = nullptr;  // the one whose run begins first
  uint32_t queued = 0;                          // runs, of all its groups
  std::string waits;                            // why, in words
  // Until its next run begins. Unknown if it is paused or no attached worker takes it.
  struct Start {
    absl::Duration soonest, latest;
  };
  std::optional<Start> start;
};

// Returns the outlook of each experiment, those first that begin first; it refers to `facts`.
//
// By fair share (fair_queue.h) a run of user u waits for the runs before it in u's own queue. Every
// other user gets device time meanwhile until they have had as much as u. The sum, divided by the
// lanes that take such runs, is the wait. Bounds: runs of measured shapes take 0.8 to 1.3 times the
// mean, others 0.2 to 5 times 10 s.
std::vector<ExperimentOutlook> LookAhead(const QueueFacts& facts);

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_QUEUE_OUTLOOK_H_
