// What the kernel says of threads that share a core.
#include "server/worker/contention.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "server/worker/run_control.h"

namespace ablate::worker {
namespace {

TEST(ContentionTest, ReadsTheSecondNumber) {
  EXPECT_EQ(ParseRunQueueDelay("32877983 18687113 146"), absl::Nanoseconds(18687113));
  EXPECT_EQ(ParseRunQueueDelay("0 0 0"), absl::ZeroDuration());
  for (const char* text : {"", "1", "1 x 2", "1 -4 2"}) {
    EXPECT_EQ(ParseRunQueueDelay(text), absl::ZeroDuration()) << text;
  }
}

void ShareCore(int core) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  EXPECT_EQ(sched_setaffinity(0, sizeof(mask), &mask), 0);
}

TEST(ContentionTest, GrowsWhileAnotherThreadHasTheCore) {
  if (!std::ifstream("/proc/thread-self/schedstat")) GTEST_SKIP() << "this kernel doesn't count it";
  const int core = sched_getcpu();
  std::atomic<bool> seen{false};
  const auto spin = [&] {
    ShareCore(core);
    const absl::Duration end = MonotonicNow() + absl::Seconds(60);
    while (!seen && MonotonicNow() < end) {
    }
  };
  std::thread other(spin);
  std::thread watched([&] {
    ShareCore(core);
    const absl::Duration end = MonotonicNow() + absl::Seconds(30);
    while (RunQueueDelay() < absl::Milliseconds(5) && MonotonicNow() < end) {
    }
    EXPECT_GE(RunQueueDelay(), absl::Milliseconds(5));
    EXPECT_LT(RunQueueDelay(), absl::Seconds(31));
    seen = true;
  });
  watched.join();
  other.join();
}

}  // namespace
}  // namespace ablate::worker
