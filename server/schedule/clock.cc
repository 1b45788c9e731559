// The machine's steady clock.
#include "server/schedule/clock.h"

#include <chrono>

namespace ablate::schedule {
namespace {

class Steady : public Clock {
 public:
  absl::Duration Now() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

const Clock& SteadyClock() {
  static const Steady clock;
  return clock;
}

}  // namespace ablate::schedule
