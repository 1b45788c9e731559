// Keeps the pilots of clusters: workers that another scheduler, such as Slurm, starts when it has a
// machine for them. Decides how many the queue wants.
#ifndef ABLATE_SERVER_SCHEDULE_PILOTS_H_
#define ABLATE_SERVER_SCHEDULE_PILOTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/records.h"

namespace ablate::schedule {

// Returns INVALID_ARGUMENT naming the field and the allowed values.
absl::Status CheckPilots(const worker::v1::SyncPilotsRequest& request);

// A cluster's pilots as workers, and the work for them.
struct PilotWork {
  uint64_t queued_lanes = 0;                  // of runs that a pilot would get
  uint32_t lanes = 1;                         // of a pilot
  uint32_t busy = 0;                          // attached pilots that have runs
  std::set<std::string, std::less<>> worked;  // pilots that were granted a run
};

struct PendingPilot {
  std::string worker;
  std::string cluster;
  std::string device_kind;
  std::string reason;  // in the scheduler's words; may be empty
  storage::Micros since = 0;
};

// The pilots of all clusters, by the launchers' reports. Not thread-safe.
class Pilots {
 public:
  // Notes a report about a cluster of `user`; returns what its launcher is to do. The names of
  // workers in `work` and in the request are without the user. After three pilots in a row that
  // ended without a run, the next ones wait a minute, then twice as long each time, up to 30.
  // RESOURCE_EXHAUSTED if there would be more than kMaxClusters.
  absl::StatusOr<worker::v1::SyncPilotsResponse> Sync(const std::string& user,
                                                      const worker::v1::SyncPilotsRequest& request,
                                                      const PilotWork& work, absl::Duration now);
  // Forgets clusters without a report for kForgotten.
  void Forget(absl::Duration now);
  // Returns the pilots that wait for a machine, by name.
  std::vector<PendingPilot> Pending() const;
  // Returns why clusters get no good pilots, by name: the last ones ended without a run, or the
  // launcher can't ask its scheduler.
  std::map<std::string, std::string> Failing() const;

  static constexpr size_t kMaxClusters = 100;
  static constexpr absl::Duration kForgotten = absl::Minutes(30);

 private:
  struct Pilot {
    bool pending = true;
    std::string reason;
    storage::Micros since = 0;
    bool withdrawn = false;  // its launcher was told to end it
  };
  struct Cluster {
    std::string device_kind;
    std::map<std::string, Pilot, std::less<>> pilots;  // by worker, without the user
    absl::Duration reported_at;
    std::string trouble;            // of the launcher; empty if it has none
    int failures = 0;               // pilots in a row that ended without a run, while runs waited
    absl::Duration start_after;     // no pilot starts before
    storage::Micros failed_at = 0;  // when the last of them was missed
    absl::Duration back_off = absl::ZeroDuration();
  };
  // Takes over the reported pilots, and counts those that have ended without a run.
  static void Note(const worker::v1::SyncPilotsRequest& request, const PilotWork& work,
                   absl::Duration now, Cluster* cluster);

  std::map<std::string, Cluster> clusters_;  // by NAME@USER
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_PILOTS_H_
