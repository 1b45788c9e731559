// Tests characters, widths, and texts made fit for a terminal.
#include "client/output/terminal_text.h"

#include "gtest/gtest.h"

namespace ablate::client {
namespace {

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

TEST(PrintableTest, ShowsWhatWouldMoveACursorOrTurnText) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(Printable("a\r\nb\tc"), "a  b c");
  EXPECT_EQ(Printable("\x7f\xC2\x9B"), "\\x7f\\x9b");
  EXPECT_EQ(Printable("a\u202Eb\u2066c\u200F\u2028\uFEFF"),
            "a\\u202eb\\u2066c\\u200f\\u2028\\ufeff");
  EXPECT_EQ(Printable("\xFFz"), "\\xffz");
  EXPECT_EQ(Printable("grün 名前 😀"), "grün 名前 😀");
}

TEST(DisplayWidthTest, CountsColumns) {
  EXPECT_EQ(DisplayWidth(""), 0);
  EXPECT_EQ(DisplayWidth("grün"), 4);
  EXPECT_EQ(DisplayWidth("u\u0308"), 1);  // u with a combining diaeresis
  EXPECT_EQ(DisplayWidth("名前"), 4);
  EXPECT_EQ(DisplayWidth("😀"), 2);
  EXPECT_EQ(DisplayWidth("−×…"), 3);
}

TEST(TruncateTest, EndsWithAnEllipsisWithinTheWidth) {
  EXPECT_EQ(Truncate("abc", 3), "abc");
  EXPECT_EQ(Truncate("abcd", 3), "ab…");
  EXPECT_EQ(Truncate("名前名", 5), "名前…");
  EXPECT_EQ(Truncate("名前名", 4), "名…");
  EXPECT_EQ(Truncate("abc", 0), "");
}

}  // namespace
}  // namespace ablate::client
