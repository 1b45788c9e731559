// Monotonic time, injected where tests would otherwise sleep.
#ifndef ABLATE_BASE_CLOCK_H_
#define ABLATE_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace ablate {

// Time since some fixed moment; never goes back. For liveness only, never for safety.
inline absl::Duration MonotonicNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // As MonotonicNow.
  virtual absl::Duration Now() const = 0;
};

// The machine's clock; lives as long as the program.
inline const Clock& SteadyClock() {
  class Steady : public Clock {
    absl::Duration Now() const override { return MonotonicNow(); }
  };
  static const Steady clock;
  return clock;
}

}  // namespace ablate

#endif  // ABLATE_BASE_CLOCK_H_
