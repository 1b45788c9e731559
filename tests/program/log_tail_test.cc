// Tests the bounds of a log and its last lines.
#include "server/program/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace ablate::program {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LogTailTest, PassesAShortLogAtOnce) {
  LogTail log;
  EXPECT_EQ(log.Add("one\n"), "one\n");
  EXPECT_EQ(log.Add("two"), "two");
  EXPECT_EQ(log.Finish(), "");
  EXPECT_EQ(log.LastLines(), "one\ntwo");
}

TEST(LogTailTest, KeepsTheEndOfALongLog) {
  LogTail log(/*head_bytes=*/10, /*tail_bytes=*/20);
  std::string passed;
  for (int line = 0; line < 1000; ++line) passed += log.Add(absl::StrCat("line ", line, "\n"));
  EXPECT_EQ(passed, "line 0\nlin");
  EXPECT_EQ(log.Finish(), "\n… 8.9 kB left out …\nline 998\nline 999\n");
}

TEST(LogTailTest, LeavesOutNothingIfHeadAndTailHoldTheLog) {
  LogTail log(/*head_bytes=*/10, /*tail_bytes=*/20);
  EXPECT_EQ(log.Add("0123456789abcdef"), "0123456789");
  EXPECT_EQ(log.Finish(), "abcdef");
}

TEST(LogTailTest, MakesUtf8OfAnyBytes) {
  LogTail log;
  std::string all = log.Add("a\xE2\x82");
  EXPECT_EQ(all, "a");
  all += log.Add("\xAC\xFFz\xF0\x9F");
  EXPECT_EQ(all, "a€\xEF\xBF\xBDz");
  all += log.Finish();
  EXPECT_TRUE(text::IsUtf8(all));
}

TEST(LogTailTest, NeverSplitsACharacter) {
  for (size_t head = 0; head < 8; ++head) {
    LogTail log(head, /*tail_bytes=*/5);
    const std::string passed = log.Add("€€€€€€€€");
    EXPECT_TRUE(text::IsUtf8(passed)) << head;
    EXPECT_LE(passed.size(), head);
    EXPECT_TRUE(text::IsUtf8(log.Finish())) << head;
  }
}

TEST(LogTailTest, PutsRemarksOnLinesOfTheirOwn) {
  LogTail log;
  log.Add("50 %");
  EXPECT_EQ(log.AddRemark("metrics: odd"), "\nablate: metrics: odd\n");
  EXPECT_EQ(log.AddRemark("again"), "ablate: again\n");
}

TEST(LogTailTest, QuotesTheLastLines) {
  LogTail log;
  log.Add(std::string(5000, 'x') + "\nTraceback\nValueError: bad\n\n");
  EXPECT_EQ(log.LastLines(), "Traceback\nValueError: bad");
  LogTail long_line;
  long_line.Add(std::string(5000, 'x'));
  EXPECT_EQ(long_line.LastLines().size(), kMaxLastLines);
}

TEST(FormatBytesTest, UsesDecimalUnits) {
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1'000'000), "1 MB");
  EXPECT_EQ(FormatBytes(1'234'567'890), "1.2 GB");
  EXPECT_EQ(FormatBytes(999'999), "1 MB");
}

}  // namespace
}  // namespace ablate::program
