#include "base/decimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

namespace ablate::text {
namespace {

TEST(ShortestDecimalTest, ReadsLikeADecimal) {
  EXPECT_EQ(ShortestDecimal(0.01), "0.01");
  EXPECT_EQ(ShortestDecimal(1e-4), "0.0001");
  EXPECT_EQ(ShortestDecimal(5e-5), "5e-05");
  EXPECT_EQ(ShortestDecimal(1e6), "1000000");
  EXPECT_EQ(ShortestDecimal(1e16), "1e+16");
  EXPECT_EQ(ShortestDecimal(-2.5), "-2.5");
  EXPECT_EQ(ShortestDecimal(16), "16");
  EXPECT_EQ(ShortestDecimal(-0.0), "0");
  EXPECT_EQ(ShortestDecimal(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(ShortestDecimalTest, ReadsBackAsTheSameDouble) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(std::strtod(ShortestDecimal(value).c_str(), nullptr), value);
  }
}

TEST(AppendDecimalTest, TakesTheShorterNotationAndReadsBack) {
  std::string text;
  for (const double value : {0.001, 1e6, 1e5, -0.0, 0.1 + 0.2, 5e-324}) {
    const size_t begin = text.size();
    AppendDecimal(value, &text);
    const double read = std::strtod(text.c_str() + begin, nullptr);
    EXPECT_EQ(std::memcmp(&read, &value, sizeof(value)), 0) << value;
    text += ' ';
  }
  EXPECT_EQ(text, "0.001 1e+06 1e+05 -0 0.30000000000000004 5e-324 ");
}

TEST(DecimalProblemTest, RefusesDecimalsThatWouldBecomeZeroOrInfinite) {
  for (const char* const small : {"1e-400", "-1e-400", "2e-308", ".0001e-305", "1E-310"}) {
    EXPECT_EQ(DecimalProblem(small),
              "is too small and would become 0; expected 0, or a number of at least 2.23e-308 in "
              "size")
        << small;
  }
  for (const char* const large : {"1e400", "-1.8e308"}) {
    EXPECT_EQ(DecimalProblem(large), "is too large; expected a number of at most 1.79e+308 in size")
        << large;
  }
  for (const char* const good : {"0", "-0.0", "0e-400", "0.000e999", "2.3e-308", "1.7e308", "1e-3",
                                 "inf", "nan", "x", "", "1.2.3", "2 hours"}) {
    EXPECT_EQ(DecimalProblem(good), "") << good;
  }
}

TEST(AppendDecimalTest, WritesAnExponentWhereDigitsAloneAreAnInteger) {
  for (const auto& [value, written] :
       {std::pair(2334369636086202761216.0, "2.3343696360862028e+21"),
        std::pair(-9223372036854775808.0, "-9.223372036854776e+18"), std::pair(1e16, "1e+16"),
        std::pair(9007199254740993.0, "9007199254740992")}) {
    std::string text;
    AppendDecimal(value, &text);
    EXPECT_EQ(text, written);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value);
  }
}

TEST(GroupedTest, SeparatesThousands) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(25968u), "25,968");
  EXPECT_EQ(Grouped(12345678), "12,345,678");
  EXPECT_EQ(Grouped(-123456), "-123,456");
  EXPECT_EQ(Grouped(std::numeric_limits<uint64_t>::max()), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace ablate::text
