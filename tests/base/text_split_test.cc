// Tests where a text is divided, and the decimal that divides it there.
#include "base/text_split.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace ablate {
namespace {

TEST(TrainingTokensTest, CountsAProductWithinRoundingOfAWholeNumberAsThatNumber) {
  EXPECT_EQ(TrainingTokens(10, 0.8), 2u);
  EXPECT_EQ(TrainingTokens(10, 0.25), 7u);
  EXPECT_EQ(TrainingTokens(1'115'394, 0.1), 1'003'854u);
}

TEST(ValidationOfTest, LeavesExactlyTheHeldOutTokens) {
  for (const uint64_t tokens : {2u, 3u, 10u, 97u, 338'025u, 134'217'728u, 1u << 30}) {
    for (const uint64_t held_out : {uint64_t{1}, tokens / 10, tokens / 3, tokens / 2, tokens - 1}) {
      if (held_out == 0 || held_out >= tokens) continue;
      const std::string decimal = ValidationOf(held_out, tokens);
      EXPECT_EQ(TrainingTokens(tokens, std::strtod(decimal.c_str(), nullptr)), tokens - held_out)
          << decimal << " of " << tokens;
    }
  }
}

TEST(ValidationOfTest, IsTheShortestDecimal) {
  EXPECT_EQ(ValidationOf(1, 10), "0.1");
  EXPECT_EQ(ValidationOf(36'059, 338'025), "0.106675");
  for (const uint64_t tokens : {7u, 338u, 12'345u}) {
    for (uint64_t held_out = 1; held_out < tokens; held_out += 1 + tokens / 50) {
      const std::string decimal = ValidationOf(held_out, tokens);
      const size_t digits = decimal.size() - 2;
      uint64_t scale = 1;
      for (size_t i = 1; i < digits; ++i) scale *= 10;
      if (scale == 1) continue;
      for (uint64_t shorter = 1; shorter < scale; ++shorter) {
        const double validation = static_cast<double>(shorter) / static_cast<double>(scale);
        ASSERT_NE(TrainingTokens(tokens, validation), tokens - held_out) << shorter << "/" << scale;
      }
    }
  }
}

}  // namespace
}  // namespace ablate
