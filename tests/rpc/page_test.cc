// Pages: their sizes, tokens and bytes.
#include "server/rpc/page.h"

#include <gtest/gtest.h>

namespace ablate::rpc {
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

}  // namespace
}  // namespace ablate::rpc
