// Monotonic time, injected so that tests never sleep.
#ifndef ABLATE_SERVER_SCHEDULE_CLOCK_H_
#define ABLATE_SERVER_SCHEDULE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace ablate::schedule {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Since some fixed moment; never goes back. For liveness only, never for safety.
  virtual absl::Duration Now() const = 0;
};

// The machine's steady clock; lives as long as the program.
inline const Clock& SteadyClock() {
  class Steady : public Clock {
    absl::Duration Now() const override {
      return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
    }
  };
  static const Steady clock;
  return clock;
}

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_CLOCK_H_
