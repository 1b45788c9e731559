// Tests plain scalars by YAML 1.2's core schema.
#include "client/submit/document.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

TEST(PlainScalarTest, KnowsTheWordsOfTheCoreSchema) {
  for (const char* text : {"", "~", "null", "Null", "NULL"}) {
    EXPECT_EQ(PlainScalar(text).kind_case(), Value::kNullValue) << text;
  }
  for (const char* text : {"true", "True", "TRUE"}) EXPECT_TRUE(PlainScalar(text).bool_value());
  for (const char* text : {"false", "False", "FALSE"}) {
    EXPECT_EQ(PlainScalar(text).kind_case(), Value::kBoolValue) << text;
    EXPECT_FALSE(PlainScalar(text).bool_value()) << text;
  }
}

TEST(PlainScalarTest, ReadsNumbers) {
  const std::pair<const char*, double> numbers[] = {
      {"0", 0},
      {"-0", -0.0},
      {"+12", 12},
      {"08", 8},
      {"0o17", 15},
      {"0x1F", 31},
      {"1.", 1},
      {".5", 0.5},
      {"-2.5e-3", -2.5e-3},
      {"1e3", 1000},
      {"1E+3", 1000},
      {"0.1", 0.1},
      {"1.0e-5", 1e-5},
      {"123456789012345678901234567890", 123456789012345678901234567890.0}};
  for (const auto& [text, number] : numbers) {
    EXPECT_EQ(PlainScalar(text).kind_case(), Value::kNumberValue) << text;
    EXPECT_EQ(PlainScalar(text).number_value(), number) << text;
  }
  EXPECT_EQ(PlainScalar("-.Inf").number_value(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(PlainScalar(".nan").number_value()));
}

TEST(PlainScalarTest, LeavesTheRestAsText) {
  for (const char* text :
       {"no",    "off", "yes", "on",  "y",   "N",     "nUll",       "tRue", "1_000", "12:30:00",
        "0b1",   "0o8", "0x",  "0xg", "1e",  "1e+",   ".",          "-",    "+",     "e3",
        "1.2.3", "1 2", "nan", "inf", "--1", "7200s", "2001-12-14", ".e1",  "0X1F"}) {
    EXPECT_EQ(PlainScalar(text).kind_case(), Value::kStringValue) << text;
    EXPECT_EQ(PlainScalar(text).string_value(), text);
  }
}

}  // namespace
}  // namespace ablate::client
