// Tests waits between attempts.
#include <gtest/gtest.h>

#include "server/worker/channel.h"

namespace ablate::worker {
namespace {

TEST(BackoffTest, GrowsWithJitterToItsLimit) {
  Backoff backoff(absl::Milliseconds(50), absl::Seconds(1));
  absl::Duration expected = absl::Milliseconds(50);
  for (int i = 0; i < 20; ++i) {
    const absl::Duration wait = backoff.Next();
    EXPECT_LE(wait, expected);
    EXPECT_GE(wait, expected / 2);
    expected = std::min(expected * 1.5, absl::Seconds(1));
  }
}

TEST(BackoffTest, StartsOverAfterASuccess) {
  Backoff backoff(absl::Milliseconds(50), absl::Seconds(1));
  for (int i = 0; i < 20; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(50));
}

TEST(BackoffTest, SpreadsWorkersOut) {
  Backoff one(absl::Seconds(1), absl::Seconds(1));
  const absl::Duration first = one.Next();
  bool differs = false;
  for (int i = 0; i < 100; ++i) differs = differs || one.Next() != first;
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace ablate::worker
