// Tests the events of a page and their readers.
#include "client/web/feed.h"

#include <atomic>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::web {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kNow = absl::Milliseconds(1), kLong = absl::Seconds(60);

std::vector<std::string> Texts(const std::vector<Feed::Event>& events) {
  std::vector<std::string> texts;
  for (const Feed::Event& event : events) texts.push_back(event.name + "=" + event.data);
  return texts;
}

TEST(FeedTest, HasTheNewestState) {
  Feed feed;
  uint64_t version = 0;
  feed.Set("a", "1");
  feed.Set("b", "2");
  feed.Set("a", "3");
  EXPECT_THAT(Texts(feed.Next(&version, kNow)), ElementsAre("b=2", "a=3"));
  EXPECT_THAT(Texts(feed.Next(&version, kNow)), IsEmpty());
  feed.Set("b", "2");  // equal: nothing to send
  EXPECT_THAT(Texts(feed.Next(&version, kNow)), IsEmpty());
}

TEST(FeedTest, ContinuesAfterTheEventThatABrowserHas) {
  Feed feed, other;
  feed.SetWhole([] { return std::string("whole"); });
  feed.Add("curves", "1");
  uint64_t version = 0;
  EXPECT_THAT(Texts(feed.Next(&version, kNow)), ElementsAre("curves=whole"));
  const std::string id = feed.IdOf(version);
  feed.Add("curves", "2");
  version = feed.VersionOf(id);
  EXPECT_THAT(Texts(feed.Next(&version, kNow)), ElementsAre("curves=2"));
  for (const std::string& foreign : {other.IdOf(7), std::string("7"), std::string()}) {
    version = feed.VersionOf(foreign);
    EXPECT_EQ(version, 0u) << foreign;
    EXPECT_THAT(Texts(feed.Next(&version, kNow)), ElementsAre("curves=whole"));
  }
}

TEST(FeedTest, SendsTheWholeToAReaderWhoIsTooFarBehind) {
  Feed feed;
  feed.SetWhole([] { return std::string("whole"); });
  uint64_t version = 0;
  feed.Next(&version, kNow);
  for (int i = 0; i < 100; ++i) feed.Add("curves", "change");
  EXPECT_THAT(Texts(feed.Next(&version, kNow)), ElementsAre("curves=whole"));
}

TEST(FeedTest, WakesReadersWhenItIsClosed) {
  Feed feed;
  std::thread reader([&] {
    uint64_t version = 0;
    EXPECT_THAT(Texts(feed.Next(&version, kLong)), IsEmpty());
    EXPECT_TRUE(feed.ClosedWithin(kLong));
  });
  feed.Close();
  reader.join();
}

TEST(EventTextTest, KeepsLinesApart) {
  EXPECT_EQ(EventText("log", "x-1", "a\nb\r\nevent: c"),
            "event: log\nid: x-1\ndata: a\ndata: b \ndata: event: c\n\n");
  EXPECT_EQ(EventText("heartbeat", "", ""), "event: heartbeat\ndata: \n\n");
}

class FeedsTest : public ::testing::Test {
 protected:
  // Fills a feed with one state, and counts how often one was begun.
  std::function<Filler()> Making() {
    return [this]() -> Filler {
      ++made_;
      return {.run = [](Feed* feed) { feed->Set("parts-a", "{}"); }};
    };
  }

  // Reads until `count` pieces have come; returns them.
  std::string Read(const std::string& name, int count, const std::string& last_id = "") {
    std::string text;
    int pieces = 0;
    served_ = feeds_.Serve(name, Making(), last_id, [&](absl::string_view piece) {
      text.append(piece.data(), piece.size());
      return ++pieces < count;
    });
    return text;
  }

  std::atomic<int> made_ = 0;
  bool served_ = false;
  Feeds feeds_{absl::Milliseconds(1)};
};

TEST_F(FeedsTest, SendsEventsWithAnIdAndARetry) {
  const std::string text = Read("a", 2);
  EXPECT_TRUE(served_);
  EXPECT_THAT(text, HasSubstr("retry: 2000\nevent: heartbeat\n"));
  EXPECT_THAT(text, HasSubstr("event: parts\nid: "));
  EXPECT_THAT(text, HasSubstr("\ndata: {}\n\n"));
}

TEST_F(FeedsTest, WatchesOnceForAllReaders) {
  Feeds feeds(kLong);
  std::atomic<int> read = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 20; ++i) {
    readers.emplace_back([&] {
      int pieces = 0;
      feeds.Serve("same", Making(), "", [&](absl::string_view) {
        if (++pieces == 2) ++read;
        return pieces < 2;
      });
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(read, 20);
  EXPECT_EQ(made_, 1);
}

TEST_F(FeedsTest, RefusesMoreReadersThanItHasRoomFor) {
  std::vector<std::thread> readers;
  std::atomic<int> reading = 0;
  for (int i = 0; i < Feeds::kMaxReaders; ++i) {
    readers.emplace_back([&] {
      bool began = false;
      feeds_.Serve("a", Making(), "", [&](absl::string_view) {
        if (!std::exchange(began, true)) ++reading;
        return true;
      });
    });
  }
  while (reading < Feeds::kMaxReaders) std::this_thread::yield();
  Read("a", 1);
  EXPECT_FALSE(served_);
  feeds_.Close();
  for (std::thread& reader : readers) reader.join();
}

TEST_F(FeedsTest, EndsWhatNobodyReads) {
  std::atomic<bool> stopped = false;
  feeds_.Serve(
      "a",
      [&]() -> Filler {
        return {.run = [](Feed* feed) { feed->ClosedWithin(kLong); },
                .on_close = [&] { stopped = true; }};
      },
      "", [](absl::string_view) { return false; });
  while (feeds_.size() > 0 || !stopped) std::this_thread::yield();
  Read("b", 1);
  EXPECT_TRUE(served_);
}

TEST_F(FeedsTest, SendsNothingAfterItIsClosed) {
  feeds_.Close();
  EXPECT_EQ(Read("a", 1), "");
  EXPECT_FALSE(served_);
}

}  // namespace
}  // namespace ablate::web
