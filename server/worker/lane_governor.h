// Finds how many runs a device should train at the same time, by measuring.
#ifndef ABLATE_SERVER_WORKER_LANE_GOVERNOR_H_
#define ABLATE_SERVER_WORKER_LANE_GOVERNOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace ablate::worker {

// A run on a lane, and its steps so far.
struct LaneJob {
  std::string id;
  uint64_t steps = 0;
};

// Starts with one lane, and doubles the number while all lanes train and throughput grows by at
// least 10 %; otherwise it returns to the last number and stays there. Steps of different models
// can't be added, so throughput is compared by the runs that train before and after a change: with
// n lanes before and m after, and s as the median of their rates' ratios, it has grown by s · m/n.
//
// It tries again after ten minutes, or after one if runs have become much faster or slower. Runs
// that end before they can be measured are small, and their start takes a large part of their time:
// lanes are added for them without measuring. Has no clock: times are arguments, and never fall.
class LaneGovernor {
 public:
  explicit LaneGovernor(int most) : most_(most) {}

  int lanes() const { return lanes_; }
  // Takes the runs that hold a lane now; call it about once a second.
  void Observe(absl::Duration now, const std::vector<LaneJob>& jobs);
  // A run has run out of memory while others train: there are fewer lanes from now on.
  void OutOfMemory(absl::Duration now);

 private:
  struct Job {
    absl::Duration since;  // seen
    uint64_t steps = 0;
    std::optional<absl::Duration> stepping;  // since; nothing: made no step yet
    // Since when it is measured; nothing: not yet.
    std::optional<absl::Duration> from;
    uint64_t from_steps = 0;
  };
  using Rates = std::map<std::string, double>;  // steps per second

  void Update(absl::Duration now, const std::vector<LaneJob>& jobs);
  // Begins, continues or restarts a measurement. Returns true if it is complete.
  bool Measure(absl::Duration now);
  Rates Measured(absl::Duration now) const;
  // Handle a complete measurement: before a possible change of the number, and after one.
  void Compare(absl::Duration now, Rates rates);
  // Returns true if a larger number may be tried. Nothing: runs are too short to be measured.
  bool MayTry(absl::Duration now, std::optional<double> speed) const;
  // Adds lanes for runs that are too short to be measured.
  void GrowForShortRuns(absl::Duration now);
  void Grow(Rates before);
  // Stays with `lanes`. Nothing: the speed of runs is unknown.
  void Settle(absl::Duration now, int lanes, std::optional<double> speed);
  void Restart();

  const int most_;
  int lanes_ = 1;
  std::map<std::string, Job> jobs_;
  size_t short_runs_ = 0;  // that ended since the number changed

  std::optional<absl::Duration> busy_;       // all lanes, since; a measurement may begin
  std::optional<absl::Duration> measuring_;  // since
  double samples_ = 0, in_use_ = 0;          // in_use_ / samples_ is the mean number of busy lanes

  // While a larger number is tried: the lanes, busy lanes and rates before.
  int lanes_before_ = 0;  // 0: none is tried
  double busy_before_ = 1;
  Rates before_;
  int unmeasured_ = 0;  // attempts in which no run lasted

  std::optional<absl::Duration> settled_;  // since
  std::optional<absl::Duration> shrunk_;   // the last time, for want of memory
  std::optional<double> speed_;            // median rate then
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LANE_GOVERNOR_H_
