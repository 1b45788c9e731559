// Orders the queue by fair share: the next run is of the user with the least device time, used and
// expected.
#ifndef ABLATE_SERVER_SCHEDULE_FAIR_QUEUE_H_
#define ABLATE_SERVER_SCHEDULE_FAIR_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/lease_store.h"

namespace ablate::schedule {

// The priority, as in storage::NewExperiment, from which on runs wait for everybody's others.
inline constexpr int kBackground = 2;
// Guess of the lane time of a run whose shape nobody has measured.
inline constexpr double kUnknownRunMicros = 10e6;

// Returns the limit on the lanes of a user's runs under leases at one time; nothing: no limit. A
// user below it gets one more run, however many lanes it takes.
using MaxLanes = std::function<std::optional<int64_t>(const std::string& user)>;

// Orders queued runs by fair share. A user's share is the charged device time
// (storage::DeviceShare) plus the expected time of their leased runs. Runs of priority background
// wait for everybody's others; otherwise a priority orders only its owner's runs. Not thread-safe.
class FairQueue {
 public:
  // `queue` is as returned by LeaseStore::Queue with the limit `page`; 0: it is the whole queue.
  // `max_lanes` may be null.
  FairQueue(std::vector<storage::QueuedRun> queue, const storage::DeviceShares& shares,
            const MaxLanes& max_lanes, uint32_t page = 0);

  // Returns the number of users with queued runs.
  size_t users() const { return users_.size(); }
  // Returns true if Next stopped because a user whose turn it is may have more runs than the page.
  // Only somebody whose runs were handed out stops it: others' runs may fit no worker.
  bool ran_out() const { return ran_out_; }

  // Removes and returns the next run; null if no user below their limit has a queued run, or if it
  // ran out. Valid as long as this object.
  const storage::QueuedRun* Next();
  // Charges about `micros` microseconds for the run that Next returned last, which was granted.
  void HandedOut(double micros);

 private:
  struct User {
    std::vector<storage::QueuedRun> runs;  // in their order
    size_t next = 0;
    double had = 0;                             // microseconds
    std::optional<int64_t> may_have_more = {};  // lanes; nothing: any number
    bool has_more = false;                      // than the page
    bool handed_out = false;                    // one of their runs
  };
  static bool ComesBefore(const User& a, const User& b);

  std::map<std::string, User> users_;
  User* last_ = nullptr;
  bool ran_out_ = false;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_FAIR_QUEUE_H_
