// Tests the pool for work that gRPC reactions must not do.
#include "server/rpc/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ablate::rpc {
namespace {

// A pool whose only thread waits until Release.
struct Blocked {
  explicit Blocked(lookup::Limit limit) : pool(1, limit) {
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
    EXPECT_TRUE(blocked.pool.TryPost(count).ok());
    EXPECT_TRUE(blocked.pool.TryPost(count).ok());
    const absl::Status refused = blocked.pool.TryPost(count);
    EXPECT_TRUE(absl::IsResourceExhausted(refused));
    EXPECT_EQ(refused.message(),
              "too many calls that wait at once; expected at most 2. Retry later");
    blocked.pool.Post(count);
    blocked.Release();
  }
  EXPECT_EQ(done, 3);
}

TEST(WorkPoolTest, LetsUsersTakeTurns) {
  std::vector<std::string> order;
  {
    Blocked blocked(100);
    const auto post = [&](const std::string& user, int tasks) {
      for (int i = 0; i < tasks; ++i) {
        blocked.pool.Post([&order, user, i] { order.push_back(absl::StrCat(user, i)); }, user);
      }
    };
    post("ada", 4);
    post("bob", 2);
    post("", 1);
    post("cyd", 1);
    blocked.Release();
  }
  EXPECT_EQ(order, (std::vector<std::string>{"ada0", "bob0", "0", "cyd0", "ada1", "bob1", "ada2",
                                             "ada3"}));
}

TEST(WorkPoolTest, RefusesAUserWhomTooMuchWaitsForAndNobodyElse) {
  Blocked blocked({4, 2});
  const auto nothing = [] {};
  EXPECT_TRUE(blocked.pool.TryPost(nothing, "ada").ok());
  EXPECT_TRUE(blocked.pool.TryPost(nothing, "ada").ok());
  const absl::Status refused = blocked.pool.TryPost(nothing, "ada");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "too many calls that wait at once: ada has 2; expected at most 2 per user and 4 in "
            "all. Retry later");
  EXPECT_TRUE(blocked.pool.TryPost(nothing, "bob").ok());
  EXPECT_TRUE(blocked.pool.TryPost(nothing).ok());
  EXPECT_FALSE(blocked.pool.TryPost(nothing, "cyd").ok()) << "4 wait in all";
  blocked.Release();
}

TEST(WorkPoolTest, KeepsThreadsForOthersThanWhoHoldsSome) {
  std::promise<void> gate, begun[2];
  const std::shared_future<void> opened = gate.get_future().share();
  WorkPool pool({3, 2}, 100);
  std::atomic<bool> third_ran = false;
  for (std::promise<void>& each : begun) {
    pool.Post(
        [&each, opened] {
          each.set_value();
          opened.wait();
        },
        "ada");
  }
  pool.Post([&third_ran] { third_ran = true; }, "ada");
  for (std::promise<void>& each : begun) each.get_future().wait();
  std::promise<void> ran;
  pool.Post([&ran] { ran.set_value(); }, "bob");
  ran.get_future().wait();
  EXPECT_FALSE(third_ran) << "ada has two threads of three";
  gate.set_value();
  pool.WaitUntilIdle(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  EXPECT_TRUE(third_ran);
}

TEST(WorkPoolTest, RunsWhatWaitsForAUsersThreadsBeforeItEnds) {
  std::atomic<int> done = 0;
  {
    WorkPool pool({4, 1}, 1'000);
    for (int i = 0; i < 500; ++i) pool.Post([&done] { ++done; }, "ada");
  }
  EXPECT_EQ(done, 500);
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
