// Tests what a watcher is sent, and when.
#include "server/service/watch_feed.h"

#include <gtest/gtest.h>

#include <set>

namespace ablate::service {
namespace {

using storage::CellRecord;
using storage::RunState;

CellRecord Cell(uint32_t index, RunState state, uint32_t step, uint64_t change) {
  CellRecord cell;
  cell.index = index;
  cell.state = state;
  cell.step = step;
  cell.change = change;
  return cell;
}

// Returns a feed that has sent cells 0 to `count` - 1 as running with values.
WatchFeed Running(uint32_t count) {
  WatchFeed feed(0);
  std::vector<CellRecord> cells;
  for (uint32_t i = 0; i < count; ++i) cells.push_back(Cell(i, RunState::kLeased, 1, i + 1));
  feed.Changed(cells);
  feed.Take(absl::ZeroDuration(), false);
  for (uint32_t i = 0; i < count; ++i) feed.ToldValues(i);
  return feed;
}

TEST(WatchFeedTest, TellsNewCellsAtOnceHoweverMany) {
  WatchFeed feed(0);
  std::vector<CellRecord> cells;
  for (uint32_t i = 0; i < 500; ++i) cells.push_back(Cell(i, RunState::kQueued, 0, i + 1));
  feed.Changed(cells);
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 500u);
  EXPECT_EQ(feed.token(), 500u);
  EXPECT_FALSE(feed.next_time().has_value());
}

TEST(WatchFeedTest, TellsChangesOfStateAtOnce) {
  WatchFeed feed = Running(2);
  feed.Changed({Cell(0, RunState::kLeased, 2, 3), Cell(1, RunState::kLeased, 2, 4)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 2u);
  feed.Changed({Cell(0, RunState::kDone, 3, 5), Cell(1, RunState::kLeased, 3, 6)});
  const auto told = feed.Take(absl::Seconds(1), false);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].state, RunState::kDone);
}

TEST(WatchFeedTest, TellsEverythingAboutARunUntilItsFirstValues) {
  WatchFeed feed = Running(2);
  feed.Changed({Cell(0, RunState::kLeased, 2, 3)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 1u);  // spends this moment's progress
  feed.Changed({Cell(9, RunState::kLeased, 0, 4)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 1u);
  feed.Changed({Cell(9, RunState::kLeased, 1, 5)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 1u);
  feed.ToldValues(9);
  feed.Changed({Cell(9, RunState::kLeased, 2, 6)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 0u);
}

TEST(WatchFeedTest, PacesProgressAndTellsTheNewest) {
  WatchFeed feed = Running(2);
  uint64_t change = 2;
  uint32_t messages = 0;
  uint32_t newest = 0;
  // A commit a millisecond, for two seconds.
  for (int i = 1; i <= 2'000; ++i) {
    feed.Changed({Cell(0, RunState::kLeased, static_cast<uint32_t>(i), ++change),
                  Cell(1, RunState::kLeased, static_cast<uint32_t>(i), ++change)});
    for (const CellRecord& cell : feed.Take(absl::Milliseconds(i), false)) {
      ++messages;
      EXPECT_EQ(cell.step, static_cast<uint32_t>(i));
      newest = cell.step;
    }
  }
  EXPECT_GE(messages, 2 * kProgressPerSecond - 4);
  EXPECT_LE(messages, 2 * kProgressPerSecond + 4);
  EXPECT_GT(newest, 1'800u);
}

TEST(WatchFeedTest, TellsEveryCellInTurnWhenThereAreMany) {
  WatchFeed feed = Running(100);
  uint64_t change = 100;
  std::set<uint32_t> told;
  absl::Duration now = absl::Seconds(10);
  for (uint32_t round = 2; round < 8; ++round) {
    std::vector<CellRecord> cells;
    for (uint32_t i = 0; i < 100; ++i) cells.push_back(Cell(i, RunState::kLeased, round, ++change));
    feed.Changed(cells);
    const auto taken = feed.Take(now, false);
    EXPECT_LE(taken.size(), kProgressPerSecond);
    for (const CellRecord& cell : taken) told.insert(cell.index);
    ASSERT_TRUE(feed.next_time().has_value());
    now = *feed.next_time();
  }
  EXPECT_EQ(told.size(), 100u);
}

TEST(WatchFeedTest, HasATokenThatNeverSkipsWhatIsHeldBack) {
  WatchFeed feed = Running(3);
  feed.Changed({Cell(0, RunState::kLeased, 2, 10)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 1u);
  EXPECT_EQ(feed.token(), 10u);
  feed.Changed({Cell(1, RunState::kLeased, 2, 11), Cell(2, RunState::kDone, 9, 12)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 1u);  // the end of 2, not the progress of 1
  EXPECT_EQ(feed.token(), 10u);
  feed.Changed({Cell(1, RunState::kLeased, 3, 13)});
  EXPECT_EQ(feed.Take(absl::Seconds(1), false).size(), 0u);
  EXPECT_EQ(feed.token(), 10u);
  const auto told = feed.Take(*feed.next_time(), false);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].step, 3u);
  EXPECT_EQ(feed.token(), 13u);
  EXPECT_EQ(feed.seen(), 13u);
}

TEST(WatchFeedTest, HoldsNothingBackAtTheEnd) {
  WatchFeed feed = Running(2);
  feed.Changed({Cell(0, RunState::kLeased, 2, 3)});
  feed.Take(absl::Seconds(1), false);
  feed.Changed({Cell(0, RunState::kLeased, 3, 4), Cell(1, RunState::kLeased, 3, 5)});
  EXPECT_TRUE(feed.Take(absl::Seconds(1), false).empty());
  EXPECT_EQ(feed.Take(absl::Seconds(1), true).size(), 2u);
  EXPECT_EQ(feed.token(), 5u);
}

TEST(WatchFeedTest, BeginsAfterItsToken) {
  const WatchFeed feed(41);
  EXPECT_EQ(feed.seen(), 41u);
  EXPECT_EQ(feed.token(), 41u);
}

TEST(WatchTokenTest, LeadsBackToItsChange) {
  const auto change = ParseWatchToken(WatchToken("f00d", 12), "f00d", 12);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(*change, 12u);
  EXPECT_EQ(*ParseWatchToken("", "f00d", 12), 0u);
}

TEST(WatchTokenTest, IsInvalidIfItIsNone) {
  for (const char* token :
       {"f00d", "f00d.", ".12", "f00d.-1", "f00d.x", "f00d.99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseWatchToken(token, "f00d", 12).status())) << token;
  }
}

}  // namespace
}  // namespace ablate::service
