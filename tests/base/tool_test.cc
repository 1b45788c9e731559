// Tests how other programs are run.
#include "base/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ablate::process {
namespace {

using testing::StartsWith;

TEST(RunToolTest, ReturnsWhatItPrints) {
  EXPECT_EQ(RunTool({"cat"}, "it's\n\"$HOME\"\n").value_or(""), "it's\n\"$HOME\"\n");
  EXPECT_EQ(RunTool({"sh", "-c", "echo out; echo error >&2"}).value_or(""), "out\nerror\n");
  EXPECT_EQ(RunTool({"printf", "%s", "a b'c"}).value_or(""), "a b'c");
}

TEST(RunToolTest, IgnoresInputThatTheProgramDoesNotRead) {
  EXPECT_EQ(RunTool({"echo", "done"}, std::string(100'000, 'x')).value_or(""), "done\n");
}

TEST(RunToolTest, SaysWhyItFailed) {
  const auto failed = RunTool({"sh", "-c", "echo no such partition >&2; exit 1"});
  EXPECT_TRUE(absl::IsUnavailable(failed.status()));
  EXPECT_EQ(failed.status().message(), "sh failed: no such partition");
  EXPECT_EQ(RunTool({"false"}).status().message(), "false failed: it said nothing");
  EXPECT_THAT(std::string(RunTool({"no-such-program-here"}).status().message()),
              StartsWith("no-such-program-here failed: "));
}

TEST(ShellWordTest, QuotesEverything) {
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace ablate::process
