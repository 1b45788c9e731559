// Tests widths, and texts made fit for a terminal.
#include "client/output/terminal_text.h"

#include "gtest/gtest.h"

namespace ablate::client {
namespace {

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
