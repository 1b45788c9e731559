// The waits between restarts.
#include "server/launch/backoff.h"

#include <gtest/gtest.h>

namespace ablate::launch {
namespace {

TEST(RestartDelayTest, BeginsShortAndDoubles) {
  absl::Duration delay = RestartDelay(absl::ZeroDuration(), absl::ZeroDuration());
  EXPECT_EQ(delay, absl::Milliseconds(100));
  delay = RestartDelay(delay, absl::Seconds(1));
  EXPECT_EQ(delay, absl::Milliseconds(200));
  delay = RestartDelay(delay, absl::Seconds(59));
  EXPECT_EQ(delay, absl::Milliseconds(400));
}

TEST(RestartDelayTest, StopsGrowingAtHalfAMinute) {
  EXPECT_EQ(RestartDelay(absl::Seconds(20), absl::ZeroDuration()), absl::Seconds(30));
  EXPECT_EQ(RestartDelay(absl::Seconds(30), absl::ZeroDuration()), absl::Seconds(30));
}

TEST(RestartDelayTest, StartsOverAfterAHealthyMinute) {
  EXPECT_EQ(RestartDelay(absl::Seconds(30), absl::Minutes(1)), absl::Milliseconds(100));
}

}  // namespace
}  // namespace ablate::launch
