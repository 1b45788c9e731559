// How long the other end of a stream may keep it waiting: a place is others' when it is held for
// nothing.
#ifndef ABLATE_SERVER_SERVICE_PACE_H_
#define ABLATE_SERVER_SERVICE_PACE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/service/limits.h"
#include "storage/mutex.h"

namespace ablate::service {

struct LeastPace {
  absl::Duration patience = kStreamPatience;
  double bytes_per_second = kLeastBytesPerSecond;
};

// Counts the time that one stream waits for its other end, less what the bytes that went are worth
// at the least rate. Time without anything to read or write counts nothing: a watcher of an idle
// experiment is not slow. Thread-safe; `now` is monotonic time.
class Pace {
 public:
  explicit Pace(const LeastPace& least) : least_(least) {}

  // A read or a write begins.
  void Wait(absl::Duration now);
  // It has ended, with so many bytes.
  void Went(size_t bytes, absl::Duration now);
  // Whether the other end is behind by more than the patience.
  bool TooSlow(absl::Duration now) const;
  // What is asked for, such as "at least 64 KiB in 10s, after a wait of 1m at most".
  std::string Terms() const;

 private:
  const LeastPace least_;
  mutable Mutex mutex_;
  absl::Duration behind_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> since_ ABSL_GUARDED_BY(mutex_);  // of the wait in progress
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PACE_H_
