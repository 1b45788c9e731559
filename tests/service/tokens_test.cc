// Tokens that clients keep for us: of pages and of watches.
#include <gtest/gtest.h>

#include "server/service/page.h"
#include "server/service/watch_token.h"

namespace ablate::service {
namespace {

TEST(PageTokenTest, LeadsBackToItsPosition) {
  const auto position = PagePosition("runs of a", PageToken("runs of a", "17"));
  ASSERT_TRUE(position.ok());
  EXPECT_EQ(*position, "17");
  EXPECT_EQ(*PagePosition("runs of a", ""), "");
}

TEST(PageTokenTest, IsRefusedByAnotherList) {
  const auto position = PagePosition("runs of b", PageToken("runs of a", "17"));
  EXPECT_TRUE(absl::IsInvalidArgument(position.status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PagePosition("runs", "!!!").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PagePosition("runs", std::string(10'000, 'A')).status()));
}

TEST(PageSizeTest, HasADefaultAndALimit) {
  EXPECT_EQ(*PageSize(0, 100), 100u);
  EXPECT_EQ(*PageSize(1'000, 100), 1'000u);
  const auto size = PageSize(1'001, 100);
  EXPECT_TRUE(absl::IsInvalidArgument(size.status()));
  EXPECT_EQ(size.status().message(),
            "page_size: 1001 is too large; allowed: 0 (the default) to 1000");
}

TEST(RoomTest, TakesTheFirstRowHoweverLarge) {
  Room room(10);
  EXPECT_TRUE(room.Take(50));
  EXPECT_FALSE(room.Take(1));
  Room other(10);
  EXPECT_TRUE(other.Take(4));
  EXPECT_TRUE(other.Take(6));
  EXPECT_FALSE(other.Take(1));
}

TEST(WatchTokenTest, LeadsBackToItsChange) {
  const auto change = ParseWatchToken(WatchToken("f00d", 12), "f00d", 12);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(*change, 12u);
  EXPECT_EQ(*ParseWatchToken("", "f00d", 12), 0u);
}

TEST(WatchTokenTest, IsOutOfRangeInAnotherFileOrTheFuture) {
  EXPECT_TRUE(absl::IsOutOfRange(ParseWatchToken("beef.12", "f00d", 12).status()));
  EXPECT_TRUE(absl::IsOutOfRange(ParseWatchToken("f00d.13", "f00d", 12).status()));
}

TEST(WatchTokenTest, IsInvalidIfItIsNone) {
  for (const char* token :
       {"f00d", "f00d.", ".12", "f00d.-1", "f00d.x", "f00d.99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseWatchToken(token, "f00d", 12).status())) << token;
  }
}

}  // namespace
}  // namespace ablate::service
