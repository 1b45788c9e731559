// The pool that does what reactions must not.
#include "server/rpc/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace ablate::rpc {
namespace {

// A pool whose only thread waits until Release.
struct Blocked {
  explicit Blocked(size_t most_waiting) : pool(1, most_waiting) {
    std::promise<void> begun;
    pool.Post([this, &begun] {
      begun.set_value();
      gate.get_future().wait();
    });
    begun.get_future().wait();
  }
  void Release() { gate.set_value(); }

  std::promise<void> gate;
  WorkPool pool;
};

TEST(WorkPoolTest, RunsTasksInOrder) {
  std::vector<int> order;
  {
    Blocked blocked(10);
    for (int i = 0; i < 3; ++i) blocked.pool.Post([&order, i] { order.push_back(i); });
    blocked.Release();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(WorkPoolTest, RefusesNewWorkWhenTooMuchWaitsButGoesOnWithOld) {
  std::atomic<int> done = 0;
  {
    Blocked blocked(2);
    const auto count = [&done] { ++done; };
    EXPECT_TRUE(blocked.pool.TryPost(count));
    EXPECT_TRUE(blocked.pool.TryPost(count));
    EXPECT_FALSE(blocked.pool.TryPost(count));
    blocked.pool.Post(count);
    blocked.Release();
  }
  EXPECT_EQ(done, 3);
}

TEST(WorkPoolTest, WaitsUntilNothingRuns) {
  Blocked blocked(10);
  std::atomic<bool> done = false;
  blocked.pool.Post([&done] { done = true; });
  blocked.pool.WaitUntilIdle(std::chrono::steady_clock::now());  // returns, though one runs
  EXPECT_FALSE(done);
  blocked.Release();
  blocked.pool.WaitUntilIdle(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  EXPECT_TRUE(done);
}

TEST(WorkPoolTest, RunsDelayedTasksWhenTheyAreDue) {
  WorkPool pool(1, 10);
  const auto begin = std::chrono::steady_clock::now();
  std::promise<std::chrono::steady_clock::time_point> ran;
  std::promise<void> later_ran;
  pool.PostAfter(absl::Milliseconds(40), [&later_ran] { later_ran.set_value(); });
  pool.PostAfter(absl::Milliseconds(5),
                 [&ran] { ran.set_value(std::chrono::steady_clock::now()); });
  const auto at = ran.get_future().get();
  EXPECT_GE(at - begin, std::chrono::milliseconds(5));
  later_ran.get_future().wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(40));
}

TEST(WorkPoolTest, DropsWhatIsNotDueAtTheEnd) {
  const auto owned = std::make_shared<int>(0);
  {
    WorkPool pool(1, 10);
    pool.PostAfter(absl::Hours(1), [owned] { ++*owned; });
  }
  EXPECT_EQ(*owned, 0);
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace ablate::rpc
