// The writer: escaping, nesting, data addresses; and numbers as cells.
#include "server/report/html/markup.h"

#include "gtest/gtest.h"
#include "server/report/html/sections.h"

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

TEST(CellTest, ShowsIntervalsBelowTheirMean) {
  report::PairedStatistics difference;
  difference.mean = report::Defined(.0312);
  difference.interval = report::DefinedInterval(.0241, .0383);
  const TableCell cell = DifferenceCell(report::Scale::kDifference, difference);
  EXPECT_EQ(cell.text, "+.031");
  EXPECT_EQ(cell.below, "[+.024, +.038]");
  const TableCell ratio = DifferenceCell(report::Scale::kRatio, difference);
  EXPECT_EQ(ratio.text, "×1.032");
  EXPECT_EQ(ratio.below, "[1.024, 1.039]");
  difference.interval = report::DefinedInterval(-800, 800);
  EXPECT_EQ(DifferenceCell(report::Scale::kRatio, difference).below, "") << "no number is so large";
}

TEST(CellTest, SaysWhyThereIsNoNumber) {
  const TableCell cell = NumberCell(report::NoNumber(report::Undefined::kTooFewPairs));
  EXPECT_EQ(cell.text, "");
  EXPECT_EQ(cell.below, "too few pairs");
  Markup out;
  WriteCell(cell, &out);
  EXPECT_EQ(out.Take(), "<td>—<small>too few pairs</small></td>");
}

TEST(CellTest, ShowsPWithoutItsName) {
  EXPECT_EQ(PCell(report::Defined(.031)).text, ".031");
  EXPECT_EQ(PCell(report::Defined(.0001)).text, "< .001");
}

}  // namespace
}  // namespace ablate::html
