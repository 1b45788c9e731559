// Tests open streams, and how slow the other end of one may be.
#include "server/rpc/live_streams.h"

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpcpp/server_context.h"

namespace ablate::rpc {
namespace {

using absl::Milliseconds;
using absl::Seconds;

class Counted : public LiveStream {
 public:
  void Stop() override { ++stops; }
  void Wake() override { ++wakes; }
  void CheckPace(absl::Duration now) override { checked = now; }
  int stops = 0, wakes = 0;
  absl::Duration checked;
};

TEST(LiveStreamsTest, RefusesMoreThanItsLimit) {
  LiveStreams streams("watches", 2);
  Counted a, b, c;
  EXPECT_TRUE(streams.Add(&a).ok());
  EXPECT_TRUE(streams.Add(&b).ok());
  const absl::Status refused = streams.Add(&c);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(), "too many watches at once; expected at most 2. Retry later");
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
  streams.CheckPaces(absl::Seconds(7));
  streams.StopAll();
  EXPECT_EQ(a.wakes, 1);
  EXPECT_EQ(a.stops, 1);
  EXPECT_EQ(a.checked, absl::Seconds(7));
  EXPECT_EQ(b.wakes + b.stops, 0);
  EXPECT_EQ(b.checked, absl::ZeroDuration());
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

// Streams whose callers are `users`, by their contexts.
class UsersStreams {
 public:
  explicit UsersStreams(lookup::Limit max) : streams_("watches", max) {
    streams_.set_find_caller(
        [this](const grpc::ServerContextBase& context) -> absl::StatusOr<storage::Caller> {
          const std::string& user = users_.at(&context);
          if (user == ended_) return absl::UnauthenticatedError("the token was revoked");
          return storage::Caller{user, storage::Role::kMember, absl::StrCat("token of ", user)};
        });
  }
  ~UsersStreams() {
    for (Counted& each : added_) streams_.Remove(&each);
  }
  absl::Status Add(const std::string& user) {
    grpc::CallbackServerContext& context = contexts_.emplace_back();
    users_[&context] = user;
    return streams_.Add(&added_.emplace_back(), &context);
  }
  void RemoveFirst() { streams_.Remove(&added_.front()); }
  void End(const std::string& user) { ended_ = user; }
  LiveStreams& streams() { return streams_; }

 private:
  LiveStreams streams_;
  std::map<const grpc::ServerContextBase*, std::string> users_;
  std::string ended_;
  std::list<grpc::CallbackServerContext> contexts_;
  std::list<Counted> added_;
};

TEST(LiveStreamsTest, RefusesAUserWhoHasTheirPartAndNobodyElse) {
  UsersStreams users({4, 2});
  EXPECT_TRUE(users.Add("ada").ok());
  EXPECT_TRUE(users.Add("ada").ok());
  const absl::Status refused = users.Add("ada");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(
      refused.message(),
      "too many watches at once: ada has 2; expected at most 2 per user and 4 in all. Retry later");
  EXPECT_TRUE(users.Add("bob").ok());
  users.RemoveFirst();
  EXPECT_TRUE(users.Add("ada").ok()) << "one of hers has ended";
  EXPECT_TRUE(users.Add("cyd").ok());
  EXPECT_EQ(users.Add("bob").message(),
            "too many watches at once; expected at most 4. Retry later");
}

TEST(LiveStreamsTest, CountsNobodysStreamsAsTheServers) {
  UsersStreams users({3, 1});
  Counted a, b, c;
  EXPECT_TRUE(users.streams().Add(&a).ok());
  EXPECT_TRUE(users.streams().Add(&b).ok());
  EXPECT_TRUE(users.Add("ada").ok());
  EXPECT_FALSE(users.streams().Add(&c).ok());
}

TEST(LiveStreamsTest, RefusesACallWhoseTokenHasEnded) {
  UsersStreams users({4, 2});
  users.End("ada");
  EXPECT_TRUE(absl::IsUnauthenticated(users.Add("ada")));
  EXPECT_TRUE(users.Add("bob").ok());
}

// A minute's timeout and 100 bytes a second.
Pace Slow() { return Pace({absl::Minutes(1), 100}); }

TEST(PaceTest, EndsAWaitThatIsLongerThanTheTimeout) {
  Pace pace = Slow();
  pace.Read(Seconds(5));
  EXPECT_FALSE(pace.TooSlow(Seconds(65)));
  EXPECT_TRUE(pace.TooSlow(Seconds(65) + Milliseconds(1)));
}

TEST(PaceTest, CountsNothingWhileThereIsNothingToWaitFor) {
  Pace pace = Slow();
  EXPECT_FALSE(pace.TooSlow(absl::Hours(9)));
  pace.Write(10, absl::Hours(9));
  pace.Written(absl::Hours(9));
  EXPECT_FALSE(pace.TooSlow(absl::Hours(99)));
}

TEST(PaceTest, EndsATrickle) {
  Pace pace = Slow();
  absl::Duration now;
  int messages = 0;
  for (; !pace.TooSlow(now) && messages < 1'000; ++messages) {
    pace.Read(now);
    now += Seconds(2);  // each within the timeout
    if (pace.TooSlow(now)) break;
    pace.HasRead(1, now);
  }
  EXPECT_EQ(messages, 30);  // 2 s less a hundredth of one each, of 60 s
}

TEST(PaceTest, GoesOnForEverAtTheLeastRate) {
  Pace pace = Slow();
  absl::Duration now;
  for (int i = 0; i < 1'000; ++i) {
    pace.Read(now);
    now += Seconds(50);
    ASSERT_FALSE(pace.TooSlow(now)) << i;
    pace.HasRead(5'000, now);
  }
}

// Each takes far longer than the timeout.
TEST(PaceTest, GoesOnForEverAtTheLeastRateWithLargeMessages) {
  Pace written = Slow(), read({absl::Minutes(1), 100}, 50'000);
  absl::Duration now;
  for (int i = 0; i < 1'000; ++i) {
    written.Write(50'000, now);
    read.Read(now);
    now += Seconds(500);
    ASSERT_FALSE(written.TooSlow(now)) << i;
    ASSERT_FALSE(read.TooSlow(now)) << i;
    written.Written(now);
    read.HasRead(50'000, now);
  }
}

TEST(PaceTest, EndsAClientThatIsSlowerWithLargeMessages) {
  Pace written = Slow(), read({absl::Minutes(1), 100}, 50'000);
  written.Write(50'000, Seconds(0));
  read.Read(Seconds(0));
  EXPECT_FALSE(written.TooSlow(Seconds(500)));
  EXPECT_FALSE(read.TooSlow(Seconds(560)));
  EXPECT_TRUE(written.TooSlow(Seconds(501)));
  EXPECT_TRUE(read.TooSlow(Seconds(561)));
  written.Written(Seconds(550));  // 50 s behind
  written.Write(1'000, Seconds(550));
  EXPECT_FALSE(written.TooSlow(Seconds(560)));
  EXPECT_TRUE(written.TooSlow(Seconds(561)));
}

TEST(PaceTest, EndsAClientThatTakesNothingAfterTheTimeout) {
  Pace pace(MinPace{});
  pace.Write(lookup::kMessageBytes, Seconds(5));
  EXPECT_FALSE(pace.TooSlow(Seconds(65)));
  EXPECT_TRUE(pace.TooSlow(Seconds(65) + Milliseconds(1)));
}

TEST(PaceTest, LetsNobodySaveUpForALongPause) {
  Pace pace = Slow();
  pace.Write(1 << 30, Seconds(0));
  pace.Written(Seconds(1));
  pace.Read(Seconds(1));
  EXPECT_TRUE(pace.TooSlow(Seconds(62)));
}

TEST(PaceTest, SaysWhatIsAskedFor) {
  EXPECT_EQ(Pace(MinPace{}).Terms(), "at least 6.4 KiB a second, with at most 1m of delay");
}

}  // namespace
}  // namespace ablate::rpc
