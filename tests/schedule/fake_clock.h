// A clock that a test moves.
#ifndef ABLATE_TESTS_SCHEDULE_FAKE_CLOCK_H_
#define ABLATE_TESTS_SCHEDULE_FAKE_CLOCK_H_

#include "absl/time/time.h"
#include "base/clock.h"

namespace ablate::schedule {

class FakeClock : public Clock {
 public:
  absl::Duration Now() const override { return now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Duration now_ = absl::Seconds(1000);
};

}  // namespace ablate::schedule

#endif  // ABLATE_TESTS_SCHEDULE_FAKE_CLOCK_H_
