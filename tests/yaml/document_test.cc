// Tests plain scalars by YAML 1.2's core schema, and anchors, aliases and merge keys.
#include "proto/yaml/document.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/reflect/text.h"

namespace ablate::yaml {
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
      {"9007199254740991", 9007199254740991.0},
      {"123456789012345678901234567890.", 123456789012345678901234567890.0}};
  for (const auto& [text, number] : numbers) {
    EXPECT_EQ(PlainScalar(text).kind_case(), Value::kNumberValue) << text;
    EXPECT_EQ(PlainScalar(text).number_value(), number) << text;
  }
  EXPECT_EQ(PlainScalar("-.Inf").number_value(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(PlainScalar(".nan").number_value()));
}

TEST(PlainScalarTest, KeepsEveryDigitOfWholeNumbers) {
  for (const char* text : {"9007199254740993", "-9007199254740993", "18446744073709551615"}) {
    EXPECT_EQ(PlainScalar(text).string_value(), text);
  }
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

class AnchorTest : public ::testing::Test {
 protected:
  // Returns the document's root as text, or its problems.
  std::string Parsed(const std::string& yaml) {
    const Document document = ParseYaml(SourceText(yaml));
    std::string problems;
    for (const Diagnostic& problem : document.problems) {
      absl::StrAppend(&problems, ToString(problem, "f"), "\n");
    }
    return problems.empty() ? reflect::ShortText(document.root) : problems;
  }
};

TEST_F(AnchorTest, AliasesStandForTheirValues) {
  EXPECT_EQ(Parsed("a: &x {n: 1, m: [2]}\nb: *x\nc: [*x, &y 3, *y]\nd: &z \"no\"\ne: *z\n"),
            "{a: {m: [2], n: 1}, b: {m: [2], n: 1}, c: [{m: [2], n: 1}, 3, 3], d: no, e: no}");
  EXPECT_EQ(Parsed("a: &x\nb: [*x, &x 2, *x, &n ~]\n"), "{a: nothing, b: [nothing, 2, 2, null]}");
}

TEST_F(AnchorTest, MergeKeysAddWhatAMappingLacks) {
  const std::string base = "a: &a {x: 1, y: {z: 2}}\nb: &b {x: 5, w: 6}\n";
  EXPECT_EQ(Parsed(base + "c: {<<: *a, x: 3}\n"),
            "{a: {x: 1, y: {z: 2}}, b: {w: 6, x: 5}, c: {x: 3, y: {z: 2}}}");
  EXPECT_EQ(Parsed(base + "c: {x: 3, <<: *a}\n"), Parsed(base + "c: {<<: *a, x: 3}\n"));
  EXPECT_EQ(Parsed(base + "c:\n  <<: [*b, *a]\n"),
            "{a: {x: 1, y: {z: 2}}, b: {w: 6, x: 5}, c: {w: 6, x: 5, y: {z: 2}}}");
  EXPECT_EQ(Parsed(base + "c: &c {<<: *a}\nd: {<<: *c, y: 0}\n"),
            "{a: {x: 1, y: {z: 2}}, b: {w: 6, x: 5}, c: {x: 1, y: {z: 2}}, d: {x: 1, y: 0}}");
}

TEST_F(AnchorTest, ProblemsHaveTheirLine) {
  EXPECT_EQ(Parsed("a: 1\nb: *x\n"),
            "f:2:4: an alias (*name) without an anchor (&name) before it\n");
  EXPECT_EQ(Parsed("a: &x [1, *x]\n"), "f:1:11: an alias within its own value\n");
  EXPECT_EQ(Parsed("a: &x 1\nb: {<<: *x}\n"),
            "f:2:5: <<: 1 is not a mapping; expected an alias of one, such as *name, or a list of "
            "such aliases\n");
  EXPECT_EQ(Parsed("a: &x {b: 1}\nc: {<<: *x, <<: *x}\n"),
            "f:2:13: duplicate key \"<<\": it is already at line 2, column 5\n");
  EXPECT_EQ(Parsed("a: &x b\n*x : 1\n"), "f:2:1: an alias where a field's name is expected\n");
  EXPECT_EQ(Parsed("a: &x \"b\n"), "f:1:4: a quote that is never closed\n");
}

TEST_F(AnchorTest, PositionsOfAliasedFieldsAreTheAliass) {
  const Document document = ParseYaml(SourceText("a: &x {n: 1}\nb: *x\nc:\n  <<: *x\n  m: 1\n"));
  EXPECT_EQ(document.positions.Find("a.n").line, 1);
  EXPECT_EQ(document.positions.Find("b.n").line, 2);
  EXPECT_EQ(document.positions.Find("c.n").line, 4);
}

TEST_F(AnchorTest, RefusesAFileThatExpandsToFarTooMuch) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j == 0 ? "" : ", ", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  EXPECT_EQ(Parsed(bomb),
            "f:5:40: anchors and aliases expand to more than 100000 values; expected fewer. Write "
            "the values out\n");
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&deep, "a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_THAT(Parsed(deep), ::testing::StartsWith("f:50:12: nested deeper than 50 levels\n"));
  // Anchors around anchors: each copies what is in it.
  std::string around;
  for (int i = 0; i < 40; ++i) absl::StrAppend(&around, "&b", i, " [");
  std::string items = "1";
  for (int i = 0; i < 20'000; ++i) items += ",1";
  EXPECT_THAT(Parsed("a: " + around + items + std::string(40, ']') + "\n"),
              ::testing::HasSubstr("expand to more than 100000 values"));
}

}  // namespace
}  // namespace ablate::yaml
