// Monotonic clock, an interface so that tests needn't sleep.
#ifndef ABLATE_BASE_CLOCK_H_
#define ABLATE_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace ablate {

// Returns the time since a fixed moment; never goes back. Use it to decide when to give up
// waiting, never to decide what is stored.
inline absl::Duration MonotonicNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Interface of a monotonic clock. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Returns the same as MonotonicNow.
  virtual absl::Duration Now() const = 0;
};

// Returns the machine's clock, which lives as long as the program.
inline const Clock& SteadyClock() {
  class Steady : public Clock {
    absl::Duration Now() const override { return MonotonicNow(); }
  };
  static const Steady clock;
  return clock;
}

}  // namespace ablate

#endif  // ABLATE_BASE_CLOCK_H_
