// Measures how fast a count grows.
#ifndef ABLATE_SERVER_SCHEDULE_GROWTH_RATE_H_
#define ABLATE_SERVER_SCHEDULE_GROWTH_RATE_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace ablate::schedule {

// Averages over the last `window`; 0 until samples span `least`. Starts again if the count falls.
// Not thread-safe.
class GrowthRate {
 public:
  GrowthRate(absl::Duration window, absl::Duration least) : window_(window), least_(least) {}

  // Takes the count at a time of a monotonic clock.
  void Add(absl::Duration now, uint64_t count) {
    if (!samples_.empty() && count < samples_.back().second) samples_.clear();
    samples_.emplace_back(now, count);
    // One sample older than the window stays, so that the samples span it.
    while (samples_.size() > 2 && now - samples_[1].first >= window_) samples_.pop_front();
  }

  // Returns the growth per second; 0 if too little is known, or if no sample is from the window.
  double PerSecond(absl::Duration now) const {
    if (samples_.empty() || now - samples_.back().first > window_) return 0;
    const absl::Duration time = samples_.back().first - samples_.front().first;
    if (time < least_) return 0;
    return static_cast<double>(samples_.back().second - samples_.front().second) /
           absl::ToDoubleSeconds(time);
  }

 private:
  absl::Duration window_, least_;
  std::deque<std::pair<absl::Duration, uint64_t>> samples_;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_GROWTH_RATE_H_
