// Text for people: shortening, escaping, decimals, suggestions.
#include "proto/reflect/text.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

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

TEST(Utf8Test, KnowsWellFormedText) {
  EXPECT_TRUE(IsUtf8("aé€😀"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xE2\x82", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(bad)) << ShortText(bad);
  }
}

TEST(ControlCharacterTest, KnowsBothRangesAndExceptions) {
  EXPECT_FALSE(HasControlCharacter("é ü"));
  EXPECT_TRUE(HasControlCharacter("a\tb"));
  EXPECT_FALSE(HasControlCharacter("a\tb\n", "\t\n"));
  EXPECT_TRUE(HasControlCharacter("\x7f"));
  EXPECT_TRUE(HasControlCharacter("\xC2\x85"));
  EXPECT_FALSE(HasControlCharacter("\xC2\xA0"));
}

}  // namespace
}  // namespace ablate::reflect
