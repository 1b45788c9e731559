// What large requests may weigh together.
#include "server/rpc/call.h"

#include <gtest/gtest.h>

namespace ablate::rpc {
namespace {

TEST(ByteBudgetTest, GivesNoMoreThanItHas) {
  ByteBudget budget(100);
  std::shared_ptr<void> first = budget.Take(60);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(budget.Take(41), nullptr);
  const std::shared_ptr<void> second = budget.Take(40);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(budget.Take(1), nullptr);
  first.reset();
  EXPECT_EQ(budget.Take(61), nullptr);
  EXPECT_NE(budget.Take(60), nullptr);
}

TEST(ByteBudgetTest, IsWholeAgainWhenTheLastShareIsGone) {
  ByteBudget budget(100);
  std::shared_ptr<void> share = budget.Take(100);
  std::shared_ptr<void> copy = share;
  share.reset();
  EXPECT_EQ(budget.Take(1), nullptr);
  copy.reset();
  EXPECT_NE(budget.Take(100), nullptr);
  EXPECT_EQ(budget.Take(101), nullptr);
}

}  // namespace
}  // namespace ablate::rpc
