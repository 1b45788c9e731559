// Tests how other programs are run.
#include "base/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"

namespace ablate::process {
namespace {

using testing::StartsWith;

TEST(RunToolTest, ReturnsWhatItPrints) {
  EXPECT_EQ(RunTool({"cat"}, "it's\n\"$HOME\"\n").value_or(""), "it's\n\"$HOME\"\n");
  EXPECT_EQ(RunTool({"sh", "-c", "echo out; echo error >&2"}).value_or(""), "out\nerror\n");
  EXPECT_EQ(RunTool({"printf", "%s", "a b'c"}).value_or(""), "a b'c");
}

TEST(RunToolTest, GivesInputOfAnySizeThatCanBeOpenedAgain) {
  const std::string input(1'000'000, 'x');
  EXPECT_EQ(RunTool({"cat", "/dev/stdin"}, input).value_or(""), input);
  EXPECT_EQ(RunTool({"echo", "done"}, input).value_or(""), "done\n");
}

TEST(RunToolTest, SaysWhyItFailed) {
  const auto failed = RunTool({"sh", "-c", "echo 'no such\tpartition' >&2; exit 1"});
  EXPECT_TRUE(absl::IsUnavailable(failed.status()));
  EXPECT_EQ(failed.status().message(), "sh failed with exit code 1: no such\xEF\xBF\xBDpartition");
  EXPECT_EQ(RunTool({"false"}).status().message(), "false failed with exit code 1");
  EXPECT_THAT(std::string(RunTool({"no-such-program-here"}).status().message()),
              StartsWith("no-such-program-here failed with exit code 127: "));
}

TEST(RunToolTest, NamesTheSignal) {
  EXPECT_EQ(RunTool({"sh", "-c", "kill -9 $$"}).status().message(), "sh was ended by signal 9");
}

TEST(RunToolTest, KillsWhatTakesTooLong) {
  const auto late = RunTool({"sh", "-c", "trap '' TERM; echo begun; sleep 600; echo no"}, "",
                            absl::Milliseconds(300));
  EXPECT_EQ(late.status().message(), "sh took longer than 300ms: begun");
}

TEST(RunToolTest, DoesNotWaitForWhatRemainsInTheBackground) {
  const absl::Time begin = absl::Now();
  EXPECT_EQ(RunTool({"sh", "-c", "sleep 20 & echo done"}).value_or(""), "done\n");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15));
}

TEST(ShellWordTest, QuotesEverything) {
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace ablate::process
