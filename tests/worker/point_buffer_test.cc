// Tests that points become columns, and the parsing of the kernel's run-queue delays.
#include "server/worker/point_buffer.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "server/worker/run_control.h"

namespace ablate::worker {
namespace {

TEST(PointBufferTest, CollectsAColumnForEachKey) {
  PointBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  buffer.Add({{"train/loss", 0, 1.5}, {"eval/loss", 0, 2.5}, {"train/loss", 1, 1.25}});
  buffer.Add({{"train/loss", 2, NAN}});
  EXPECT_FALSE(buffer.empty());
  const v1::Points points = buffer.Take(3, {absl::Milliseconds(2), absl::Milliseconds(1), 40});
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(points.step(), 3u);
  EXPECT_EQ(points.busy_us(), 2000u);
  EXPECT_EQ(points.contended_us(), 1000u);
  EXPECT_EQ(points.tokens(), 40u);
  ASSERT_EQ(points.columns_size(), 2);
  EXPECT_EQ(points.columns(0).key(), "eval/loss");
  EXPECT_EQ(points.columns(1).key(), "train/loss");
  ASSERT_EQ(points.columns(1).steps_size(), 3);
  EXPECT_EQ(points.columns(1).steps(2), 2u);
  EXPECT_EQ(points.columns(1).values(0), 1.5);
  EXPECT_TRUE(std::isnan(points.columns(1).values(2)));
}

TEST(PointBufferTest, TellsEachMicrosecondOnce) {
  PointBuffer buffer;
  uint64_t told = 0;
  for (int i = 1; i <= 10; ++i) {
    told += buffer.Take(0, {absl::Nanoseconds(1500) * i, {}, 0}).busy_us();
  }
  EXPECT_EQ(told, 15u);
  EXPECT_EQ(buffer.Take(0, {absl::Microseconds(3), {}, 0}).busy_us(), 0u) << "it never goes back";
}

TEST(PointBufferTest, TellsContentionWithTheTimeItIsPartOf) {
  PointBuffer buffer;
  EXPECT_EQ(buffer.Take(0, {absl::Microseconds(10), absl::Microseconds(12), 5}).contended_us(),
            10u);
  const v1::Points next = buffer.Take(0, {absl::Microseconds(20), absl::Microseconds(13), 8});
  EXPECT_EQ(next.contended_us(), 3u) << "what did not fit into the first";
  EXPECT_EQ(next.tokens(), 3u);
}

TEST(RunQueueDelayTest, ReadsTheSecondNumber) {
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

TEST(RunQueueDelayTest, GrowsWhileAnotherThreadHasTheCore) {
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
