// Tests the scope in which subnormal numbers are 0.
#include "server/engine/flush_subnormals.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/subnormal_product.h"

namespace ablate::engine {
namespace {

TEST(FlushSubnormalsTest, TakesSubnormalNumbersAs0WhileItLives) {
  EXPECT_GT(SubnormalProduct(), 0);
  {
    const FlushSubnormals flush;
    EXPECT_EQ(SubnormalProduct(), 0);
    EXPECT_EQ(SmallProduct(), 0);
    {
      const FlushSubnormals inner;
      EXPECT_EQ(SubnormalProduct(), 0);
    }
    EXPECT_EQ(SubnormalProduct(), 0);
  }
  EXPECT_GT(SubnormalProduct(), 0);
  EXPECT_GT(SmallProduct(), 0);
}

TEST(FlushSubnormalsTest, IsInheritedByThreadsThatAreCreatedMeanwhile) {
  const auto product_of_a_thread = [] {
    float product = -1;
    std::thread([&] { product = SubnormalProduct(); }).join();
    return product;
  };
  EXPECT_GT(product_of_a_thread(), 0);
  const FlushSubnormals flush;
  EXPECT_EQ(product_of_a_thread(), 0);
}

}  // namespace
}  // namespace ablate::engine
