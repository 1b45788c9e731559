// Tests the writer: escaping, nesting, data addresses.
#include "base/markup.h"

#include "gtest/gtest.h"

namespace ablate::html {
namespace {

TEST(MarkupTest, EscapesTextsAndAttributes) {
  Markup out;
  out.Open("p", {{"title", "\"><b>&'"}}).Text("<i>&\"'").Close();
  EXPECT_EQ(out.Take(),
            "<p title=\"&quot;&gt;&lt;b&gt;&amp;&#39;\">&lt;i&gt;&amp;&quot;&#39;</p>\n");
  EXPECT_EQ(out.Take(), "");
}

TEST(MarkupTest, ReplacesWhatNoPageMayHold) {
  Markup out;
  out.Text(absl::string_view("a\0b\n\x1b\xff\u202e", 9));
  EXPECT_EQ(out.Take(), "a\uFFFDb\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(MarkupTest, KeepsLineFeedsInLinesOnly) {
  Markup out;
  out.Lines("a: <b>\n  c\r\n");
  EXPECT_EQ(out.Take(), "a: &lt;b&gt;\n  c\uFFFD\n");
}

TEST(MarkupTest, ClosesTheInnermostElement) {
  Markup out;
  out.Open("ul").Open("li").Text("a").Close().Close();
  EXPECT_EQ(out.Take(), "<ul><li>a</li>\n</ul>\n");
}

TEST(DataUriTest, EncodesWhatAnAddressMayNotHold) {
  EXPECT_EQ(DataUri("text/csv", "a,b\n\"1\",é%#<"),
            "data:text/csv;charset=utf-8,a,b%0A%221%22,%C3%A9%25%23%3C");
}

}  // namespace
}  // namespace ablate::html
