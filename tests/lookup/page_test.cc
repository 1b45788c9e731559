// Pages: their sizes, tokens and bytes.
#include "server/lookup/page.h"

#include <gtest/gtest.h>

namespace ablate::lookup {
namespace {

TEST(ReadPageTest, FindsThePositionOfAToken) {
  const auto page = ReadPage(0, PageToken("runs of a", "17"), "runs of a", 100);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->position, "17");
  EXPECT_EQ(page->size, 100u);
  EXPECT_EQ(ReadPage(1'000, "", "runs of a", 100)->position, "");
  EXPECT_EQ(ReadPage(1'000, "", "runs of a", 100)->size, 1'000u);
}

TEST(ReadPageTest, RefusesAnotherListsToken) {
  for (const std::string& token :
       {PageToken("runs of a", "17"), std::string("!!!"), std::string(10'000, 'A')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPage(0, token, "runs of b", 100).status())) << token;
  }
}

TEST(ReadPageTest, RefusesTooManyRows) {
  EXPECT_EQ(ReadPage(1'001, "", "runs", 100).status().message(),
            "page_size: 1001 is too large; expected 0 (the default) to 1000");
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
}  // namespace ablate::lookup
