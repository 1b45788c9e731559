// Tests text for people: shortening, escaping, suggestions.
#include "proto/reflect/text.h"

#include "gmock/gmock.h"
#include "tests/reflect/values.h"

namespace ablate::reflect {
namespace {

TEST(ShortTextTest, WritesValuesAsPeopleDo) {
  EXPECT_EQ(ShortText(FromJson(R"({"b": [1, true, null], "a": "x y"})")),
            "{a: x y, b: [1, true, null]}");
  EXPECT_EQ(ShortText(FromJson("0.010")), "0.01");
  EXPECT_EQ(ShortText(FromJson("\"plain\"")), "plain");
}

TEST(ShortTextTest, CutsAtACharactersBorder) {
  EXPECT_EQ(ShortText("ééééé", 10), "ééééé");
  EXPECT_EQ(ShortText("éééééé", 10), "ééé…");
  EXPECT_EQ(ShortText(std::string(1 << 20, 'x')).size(), 200u);
}

TEST(ShortTextTest, EscapesControlCharactersAndBrokenBytes) {
  EXPECT_EQ(ShortText(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(ShortText("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(ShortText("\xC2\x9B"), "\\xc2\\x9b");
  EXPECT_EQ(ShortText("\xC3("), "\\xc3(");
}

TEST(ShortTextTest, StopsAtDeepValues) {
  google::protobuf::Value value;
  google::protobuf::Value* inner = &value;
  for (int i = 0; i < 2000; ++i) inner = inner->mutable_list_value()->add_values();
  EXPECT_LE(ShortText(value, 1 << 20).size(), 200u);
}

TEST(NearestTest, SuggestsWhatIsClose) {
  const std::vector<std::string> fields = {"layers", "width", "heads", "learning_rate"};
  EXPECT_EQ(Nearest("layer", fields), "layers");
  EXPECT_EQ(Nearest("widht", fields), "width");
  EXPECT_EQ(Nearest("learningRate", fields), "learning_rate");
  EXPECT_EQ(Nearest("HEADS", fields), "heads");
}

TEST(NearestTest, SuggestsNothingFarAway) {
  const std::vector<std::string> fields = {"layers", "width", "heads"};
  EXPECT_EQ(Nearest("depth", fields), "");
  EXPECT_EQ(Nearest("", fields), "");
  EXPECT_EQ(Nearest(std::string(1 << 20, 'w'), fields), "");
  EXPECT_EQ(Nearest("width", {}), "");
}

TEST(AnyOfTest, JoinsAChoice) {
  EXPECT_EQ(AnyOf({}), "");
  EXPECT_EQ(AnyOf({"raw"}), "raw");
  EXPECT_EQ(AnyOf({"raw", "unit"}), "raw or unit");
  EXPECT_EQ(AnyOf({"raw", "unit", "layer"}), "raw, unit or layer");
}

}  // namespace
}  // namespace ablate::reflect
