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
#include "sync/mutex.h"

namespace ablate::service {

struct LeastPace {
  absl::Duration patience = kStreamPatience;
  double bytes_per_second = kLeastBytesPerSecond;
};

// Counts the time that one stream waits for its other end, less what the bytes that went are worth
// at the least rate. Time without anything to read or write counts nothing: a watcher of an idle
// experiment is not slow. A message on its way has the time that it takes at that rate, or a large
// one could not be passed in any. Thread-safe; `now` is monotonic time.
class Pace {
 public:
  // How large a message is that is being read is known when it is here: `largest_read` bounds it.
  explicit Pace(const LeastPace& least, size_t largest_read = 0);

  // A write of so many bytes begins.
  void Write(size_t bytes, absl::Duration now);
  void Written(absl::Duration now);
  // A read begins, and has ended with so many bytes.
  void Read(absl::Duration now);
  void HasRead(size_t bytes, absl::Duration now);
  // Whether the other end is behind by more than the patience.
  bool TooSlow(absl::Duration now) const;
  // What is asked for, such as "at least 6.4 KiB a second, and may be 1m behind that".
  std::string Terms() const;

 private:
  absl::Duration TimeOf(size_t bytes) const;
  void Begin(absl::Duration earned, absl::Duration now);
  void End(absl::Duration earned, absl::Duration now);

  const LeastPace least_;
  const absl::Duration patience_;  // with the largest read's time
  mutable Mutex mutex_;
  absl::Duration behind_ ABSL_GUARDED_BY(mutex_);                // below zero only during a write
  std::optional<absl::Duration> since_ ABSL_GUARDED_BY(mutex_);  // of the wait in progress
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_PACE_H_
