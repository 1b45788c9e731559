#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace ablate::text {
namespace {

TEST(DecodeUtf8Test, ReadsBackEveryCodePoint) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;  // surrogates have no UTF-8
    const std::string bytes = EncodeUtf8(code_point);
    size_t offset = 0;
    ASSERT_EQ(DecodeUtf8(bytes, offset), code_point);
    ASSERT_EQ(offset, bytes.size());
    ASSERT_EQ(CharacterLength(bytes + "x"), bytes.size());
  }
}

TEST(DecodeUtf8Test, StaysWhereNoneBegins) {
  size_t offset = 1;
  EXPECT_EQ(DecodeUtf8("a\xFF", offset), kNotUtf8);
  EXPECT_EQ(offset, 1u);
  EXPECT_EQ(FindNotUtf8("a\xFF"), 1u);
  EXPECT_EQ(CharacterLength(""), 0u);
  EXPECT_EQ(CharacterLength("\xFF"), 0u);
}

TEST(IsUtf8Test, KnowsWellFormedText) {
  EXPECT_TRUE(IsUtf8("aé€😀"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xE2\x82", "\xC3(", "\xC1\xBF", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(WideEncodingTest, KnowsMarksAndZerosOfAscii) {
  const auto encoding = [](absl::string_view text) { return std::string(WideEncoding(text)); };
  using namespace std::string_literals;
  EXPECT_EQ(encoding("\xFF\xFE"s + "a\0"s), "UTF-16");
  EXPECT_EQ(encoding("\xFE\xFF\x4E\x2D"s), "UTF-16");
  EXPECT_EQ(encoding("\xFF\xFE\0\0a\0\0\0"s), "UTF-32");
  EXPECT_EQ(encoding("\0\0\xFE\xFF"s), "UTF-32");
  EXPECT_EQ(encoding("a\0b\0\n\0"s), "UTF-16LE");
  EXPECT_EQ(encoding("\0a\0b\0"s), "UTF-16BE");
  for (const std::string& text : {""s, "a"s, "a\0"s, "abcd"s, "\xEF\xBB\xBF"s + "a"s, "\xFF\n"s,
                                  "a\0b\0cd"s, "\0\0\0\0"s, "@\0\0\0\0\0\0\0{}"s}) {
    EXPECT_EQ(encoding(text), "") << text.size();
  }
}

TEST(FirstCharacterTest, RefusesWhatIsNotUtf8) {
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xC3(", "\xFF"}) {
    EXPECT_FALSE(FirstCharacter(text).valid);
    EXPECT_EQ(FirstCharacter(text).bytes, 1u);
  }
}

TEST(FirstCharacterTest, ReadsOneToFourBytes) {
  EXPECT_EQ(FirstCharacter("a!").code, 0x61u);
  EXPECT_EQ(FirstCharacter("é!").code, 0xE9u);
  EXPECT_EQ(FirstCharacter("€!").code, 0x20ACu);
  EXPECT_EQ(FirstCharacter("\xF4\x8F\xBF\xBF").code, 0x10FFFFu);
  EXPECT_EQ(FirstCharacter("€!").bytes, 3u);
}

TEST(HasControlCharacterTest, KnowsBothRangesAndExceptions) {
  EXPECT_FALSE(HasControlCharacter("é ü"));
  EXPECT_TRUE(HasControlCharacter("a\tb"));
  EXPECT_FALSE(HasControlCharacter("a\tb\n", "\t\n"));
  EXPECT_TRUE(HasControlCharacter("\x7f"));
  EXPECT_TRUE(HasControlCharacter("\xC2\x85"));
  EXPECT_FALSE(HasControlCharacter("\xC2\xA0"));
  EXPECT_TRUE(HasControlCharacter("\xFF\x01"));
}

TEST(IsPrintableTest, CountsCharactersAndRefusesControls) {
  EXPECT_TRUE(IsPrintable("2024-05-01 größe", 64));
  EXPECT_TRUE(IsPrintable("界界", 2));
  EXPECT_FALSE(IsPrintable("界界界", 2));
  EXPECT_FALSE(IsPrintable("", 64));
  EXPECT_FALSE(IsPrintable("a\tb", 64));
  EXPECT_FALSE(IsPrintable(std::string("a\0b", 3), 64));
  EXPECT_FALSE(IsPrintable("\xff", 64));
}

}  // namespace
}  // namespace ablate::text
