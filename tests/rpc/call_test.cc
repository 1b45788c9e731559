// Tests the limit on large requests at once.
#include "server/rpc/call.h"

#include <gtest/gtest.h>

namespace ablate::rpc {
namespace {

TEST(ByteBudgetTest, GivesNoMoreThanItHas) {
  ByteBudget budget("bytes of experiments", 100);
  absl::StatusOr<std::shared_ptr<void>> first = budget.Take(60);
  EXPECT_TRUE(first.ok());
  const absl::Status refused = budget.Take(41).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "too many bytes of experiments at once; expected at most 100. Retry later");
  const auto second = budget.Take(40);
  EXPECT_TRUE(second.ok());
  EXPECT_FALSE(budget.Take(1).ok());
  first->reset();
  EXPECT_FALSE(budget.Take(61).ok());
  EXPECT_TRUE(budget.Take(60).ok());
}

TEST(ByteBudgetTest, KeepsAUserFromTakingWhatIsOthers) {
  ByteBudget budget("bytes of experiments", {100, 25});
  const auto first = budget.Take(20, "ada");
  ASSERT_TRUE(first.ok());
  const absl::Status refused = budget.Take(6, "ada").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "too many bytes of experiments at once: ada has 20; expected at most 25 per user and "
            "100 in all. Retry later");
  { EXPECT_TRUE(budget.Take(5, "ada").ok()); }
  EXPECT_TRUE(budget.Take(5, "ada").ok()) << "those were given back";
  EXPECT_TRUE(budget.Take(25, "bob").ok());
  EXPECT_TRUE(budget.Take(80).ok()) << "nobody has no limit of a user";
}

TEST(ByteBudgetTest, IsWholeAgainWhenTheLastShareIsGone) {
  ByteBudget budget("bytes of experiments", 100);
  std::shared_ptr<void> share = *budget.Take(100);
  std::shared_ptr<void> copy = share;
  share.reset();
  EXPECT_FALSE(budget.Take(1).ok());
  copy.reset();
  EXPECT_TRUE(budget.Take(100).ok());
  EXPECT_FALSE(budget.Take(101).ok());
}

}  // namespace
}  // namespace ablate::rpc
