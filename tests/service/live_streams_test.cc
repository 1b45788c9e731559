// The streams that are open.
#include "server/service/live_streams.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace ablate::service {
namespace {

class Counted : public LiveStream {
 public:
  void Stop() override { ++stops; }
  void Wake() override { ++wakes; }
  void Look(absl::Duration now) override { looked = now; }
  int stops = 0, wakes = 0;
  absl::Duration looked;
};

TEST(LiveStreamsTest, RefusesMoreThanItsLimit) {
  LiveStreams streams("watches", 2);
  Counted a, b, c;
  EXPECT_TRUE(streams.Add(&a).ok());
  EXPECT_TRUE(streams.Add(&b).ok());
  const absl::Status refused = streams.Add(&c);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(), "too many watches at once: at most 2; try again later");
  streams.Remove(&a);
  EXPECT_TRUE(streams.Add(&c).ok());
}

TEST(LiveStreamsTest, ReachesThoseThatAreOpen) {
  LiveStreams streams("watches", 2);
  Counted a, b;
  ASSERT_TRUE(streams.Add(&a).ok());
  ASSERT_TRUE(streams.Add(&b).ok());
  streams.Remove(&b);
  streams.WakeAll();
  streams.LookAtAll(absl::Seconds(7));
  streams.StopAll();
  EXPECT_EQ(a.wakes, 1);
  EXPECT_EQ(a.stops, 1);
  EXPECT_EQ(a.looked, absl::Seconds(7));
  EXPECT_EQ(b.wakes + b.stops, 0);
  EXPECT_EQ(b.looked, absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(streams.Add(&b)));
}

TEST(LiveStreamsTest, WaitsForTheLastOne) {
  LiveStreams streams("watches", 2);
  Counted a, b;
  ASSERT_TRUE(streams.Add(&a).ok());
  ASSERT_TRUE(streams.Add(&b).ok());
  streams.StopAll();
  std::thread ending([&] {
    streams.Remove(&a);
    streams.Remove(&b);
  });
  streams.WaitUntilGone(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  ending.join();
  Counted c;
  LiveStreams others("downloads", 1);
  ASSERT_TRUE(others.Add(&c).ok());
  others.WaitUntilGone(std::chrono::steady_clock::now());  // returns, though there is one
}

}  // namespace
}  // namespace ablate::service
