// Whose run comes next: of the users with queued runs the one who has had the least of the devices.
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

// The most runs of a user that may be under leases at one time; nothing: as many as there are
// lanes.
using MaxLanes = std::function<std::optional<int64_t>(const std::string& user)>;

// What a user has had is the device time that was charged (storage::DeviceShare), and what the runs
// that they have out are expected to take. Runs of priority background wait for everybody's others;
// apart from that a priority orders its owner's runs alone. Not thread-safe.
class FairQueue {
 public:
  // `queue` as LeaseStore::Queue gives it. `max_lanes` may be null.
  FairQueue(std::vector<storage::QueuedRun> queue, const storage::DeviceShares& shares,
            const MaxLanes& max_lanes);

  // Takes the next run out; null if none is left of users who may have more. Valid as long as this.
  const storage::QueuedRun* Next();
  // The one that Next gave last is handed out, and takes about so many microseconds.
  void HandedOut(double micros);

 private:
  struct User {
    std::vector<storage::QueuedRun> runs;  // in their order
    size_t next = 0;
    double had = 0;                             // microseconds
    std::optional<int64_t> may_have_more = {};  // runs; nothing: any number
  };
  static bool ComesBefore(const User& a, const User& b);

  std::map<std::string, User> users_;
  User* last_ = nullptr;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_FAIR_QUEUE_H_
