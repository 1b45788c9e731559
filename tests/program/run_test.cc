// Tests the outputs and the end of programs.
#include "server/program/run.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/program/processes.h"
#include "tests/program/run_fixture.h"

namespace ablate::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns why a program ended, or why it couldn't be started.
std::string ReasonOf(const Request& request) {
  const absl::StatusOr<Output> output = program::RunToEnd(request);
  return output.ok() ? output->ended->reason : std::string(output.status().message());
}

TEST_F(RunTest, ReportsExitCodesAndTheLastLines) {
  const Output output = RunToEnd(Shell("echo fine; echo broken >&2; exit 3"));
  EXPECT_EQ(output.log, "fine\nbroken\n");
  EXPECT_EQ(output.ended->exit_code, 3);
  EXPECT_EQ(output.ended->reason, "exit code 3");
  EXPECT_EQ(output.ended->last_lines, "fine\nbroken");
  EXPECT_FALSE(output.ended->ok());
  EXPECT_FALSE(output.ended->stopped);
  EXPECT_TRUE(RunToEnd(Command({"true"})).ended->ok());
}

TEST_F(RunTest, NamesTheSignalThatKilledTheProgram) {
  const Output crash = RunToEnd(Shell("kill -SEGV $$"));
  EXPECT_EQ(crash.ended->signal, "SIGSEGV");
  EXPECT_EQ(crash.ended->exit_code, std::nullopt);
  EXPECT_EQ(crash.ended->reason, "killed by SIGSEGV");
  EXPECT_THAT(RunToEnd(Shell("kill -KILL $$")).ended->reason, HasSubstr("killed by SIGKILL"));
}

TEST_F(RunTest, NamesACommandThatDoesNotExist) {
  const Output missing = RunToEnd(Command({"no-such-command", "x"}));
  EXPECT_EQ(missing.ended->reason, "command not found: no-such-command");
  EXPECT_EQ(missing.ended->last_lines, "");
  EXPECT_EQ(RunToEnd(Command({"./train.sh"})).ended->reason, "command not found: ./train.sh");
  const std::string outside = folder_.Script("outside", "");
  EXPECT_EQ(RunToEnd(Command({outside})).ended->reason, "command not found: " + outside)
      << "it isn't in the sandbox";
}

TEST_F(RunTest, NamesAFileThatCannotBeExecuted) {
  folder_.Write("work/train.sh", "echo hi");
  folder_.Script("work/odd.sh", "");
  folder_.Write("work/odd.sh", "#!/no/such -x\n");
  for (const bool sandboxed : {true, false}) {
    Request request = Command({"./train.sh"});
    request.sandboxed = sandboxed;
    EXPECT_THAT(ReasonOf(request), HasSubstr("./train.sh isn't executable"));
    request.command = {"./odd.sh"};
    EXPECT_EQ(
        ReasonOf(request),
        "./odd.sh: the interpreter in its first line, /no/such, doesn't exist for the program");
  }
}

TEST_F(RunTest, FindsCommandsAsExecvpDoes) {
  folder_.Write("work/tool", "isn't executable");
  std::filesystem::create_directory(work_ + "/bin");
  folder_.Script("work/bin/tool", "echo found");
  std::filesystem::create_symlink("tool", work_ + "/bin/link");
  for (const bool sandboxed : {true, false}) {
    Request request = Command({"tool"});
    request.sandboxed = sandboxed;
    const std::string seen = sandboxed ? kWorkFolder : work_;
    request.variables["PATH"] = absl::StrCat(seen, ":", seen, "/bin:/usr/bin:/bin");
    EXPECT_EQ(RunToEnd(request).log, "found\n");
    request.command = {"bin/link"};
    EXPECT_EQ(RunToEnd(request).log, "found\n");
  }
}

TEST_F(RunTest, NamesAProgramWhoseLoaderIsMissing) {
  folder_.Script("work/program", "");
  // An ELF file whose interpreter is /no/such.
  std::string elf = ReadText("/usr/bin/true");
  const size_t loader = elf.find("/lib64/ld-linux");
  if (loader == std::string::npos) GTEST_SKIP() << "another kind of machine";
  elf.replace(loader, 10, "/no/such12");
  folder_.Write("work/program", elf);
  EXPECT_EQ(ReasonOf(Command({"./program"})),
            "./program: the loader that it names doesn't exist for the program");
}

TEST_F(RunTest, RejectsAMalformedRequest) {
  Request zero = Shell("true");
  zero.variables["A"] = std::string("x\0--share-net", 13);
  EXPECT_EQ(program::Run::Start(zero).status().code(), absl::StatusCode::kInvalidArgument);
  Request missing = Shell("true");
  missing.data = folder_ / "no/such";
  EXPECT_THAT(std::string(program::Run::Start(missing).status().message()), HasSubstr("no"));
  EXPECT_EQ(program::Run::Start(Command({})).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RunTest, TakesPointsFromAShell) {
  const Output output =
      RunToEnd(Shell("echo '{\"step\": 1, \"loss\": 0.5}' >&\"$ABLATE_METRICS\"\n"
                     "echo '{\"progress\": 1, \"of\": 2}' >/dev/fd/$ABLATE_METRICS\n"
                     "printf '{\"step\": 2, \"loss\": NaN}' >&$ABLATE_METRICS"));
  ASSERT_EQ(output.points.size(), 2u);
  EXPECT_EQ(output.points[0], (Point{"loss", 1, 0.5}));
  EXPECT_EQ(output.points[1].step, 2u);
  EXPECT_EQ(output.progress, (Progress{1, 2}));
  EXPECT_TRUE(output.ended->ok()) << output.log;
}

TEST_F(RunTest, PutsRemarksIntoTheLog) {
  const Output output = RunToEnd(Shell("echo start; echo loss=1 >&$ABLATE_METRICS"));
  EXPECT_THAT(output.log, HasSubstr("ablate: metrics: a line isn't a JSON object"));
}

TEST_F(RunTest, AnswersCheckpoints) {
  const auto run =
      Start(Shell("echo before; echo '{\"step\": 4, \"a\": 1}' >&$ABLATE_METRICS\n"
                  "echo '{\"checkpoint\": 4}' >&$ABLATE_METRICS\n"
                  "echo '{\"step\": 5, \"a\": 2}' >&$ABLATE_METRICS\n"
                  "read -r answer <&$ABLATE_REPLIES; echo \"got $answer\""));
  Output before;
  while (!before.checkpoint.has_value()) Append(run->Poll(kTestDeadline), &before);
  EXPECT_EQ(before.checkpoint, 4u);
  EXPECT_THAT(before.points, ElementsAre(Point{"a", 4, 1}));
  EXPECT_EQ(before.log, "before\n");
  EXPECT_TRUE(run->Poll(absl::ZeroDuration()).empty()) << "the next line waits for the reply";
  run->Reply("kept 4");
  const Output after = AwaitEnd(run.get());
  EXPECT_THAT(after.points, ElementsAre(Point{"a", 5, 2}));
  EXPECT_EQ(after.log, "got kept 4\n");
  EXPECT_TRUE(run->Poll(kTestDeadline).empty()) << "the end is reported once";
}

TEST_F(RunTest, AnswersACheckpointBelowTheLastStepByAnError) {
  const Output output =
      RunToEnd(Shell("echo '{\"step\": 4, \"a\": 1}' >&$ABLATE_METRICS\n"
                     "echo '{\"checkpoint\": 3}' >&$ABLATE_METRICS\n"
                     "read -r answer <&$ABLATE_REPLIES; echo \"got $answer\""));
  EXPECT_EQ(output.checkpoint, std::nullopt);
  EXPECT_THAT(output.log, HasSubstr("got {\"error\""));
}

TEST_F(RunTest, HandsOutACheckpointThatTheProgramDidNotWaitFor) {
  const Output output =
      RunToEnd(Shell("echo '{\"checkpoint\": 3}' >&$ABLATE_METRICS; exec 4<&-; exit 0"));
  EXPECT_EQ(output.checkpoint, 3u);
  EXPECT_TRUE(output.ended->ok());
}

TEST_F(RunTest, BoundsALogOfTwoHundredMegabytes) {
  const Output output = RunToEnd(
      Shell("echo first; head -c 200000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo last"));
  EXPECT_TRUE(output.ended->ok());
  EXPECT_LT(output.log.size(), kLogHeadBytes + kLogTailBytes + 1000);
  EXPECT_THAT(output.log, HasSubstr("… 201.7 MB left out …"));
  EXPECT_EQ(output.log.substr(0, 6), "first\n");
  EXPECT_THAT(output.log, ::testing::EndsWith("xlast\n"));
  EXPECT_THAT(output.ended->last_lines, ::testing::EndsWith("last"));
}

TEST_F(RunTest, SurvivesAFloodOfMetricsWithoutLineEnds) {
  const Output output =
      RunToEnd(Shell("head -c 100000000 /dev/zero >&$ABLATE_METRICS\n"
                     "echo >&$ABLATE_METRICS; echo '{\"a\": 1}' >&$ABLATE_METRICS"));
  EXPECT_TRUE(output.ended->ok());
  EXPECT_THAT(output.points, ElementsAre(Point{"a", 0, 1}));
  EXPECT_THAT(output.log, HasSubstr("longer than 64 KiB"));
}

TEST_F(RunTest, TakesAFloodOfLines) {
  const Output output =
      RunToEnd(Shell("yes '{\"a\": 1}' | head -n 200000 >&$ABLATE_METRICS\n"
                     "echo '{\"step\": 9, \"a\": 2}' >&$ABLATE_METRICS"));
  EXPECT_TRUE(output.ended->ok());
  EXPECT_THAT(output.points, ElementsAre(Point{"a", 0, 1}, Point{"a", 9, 2}));
}

TEST_F(RunTest, RunsInItsFolderWithItsVariables) {
  Request request = Shell("pwd; echo \"$SETTING|$HOME\"; echo kept >result");
  request.variables["SETTING"] = "a b\n\"c\"";
  EXPECT_EQ(RunToEnd(request).log, "/program\na b\n\"c\"|/tmp\n");
  EXPECT_EQ(ReadText(work_ + "/result"), "kept\n");
}

TEST_F(RunTest, ReturnsAtOnceWhenAnEndedProgramAwaitsAReply) {
  const auto run = Start(Shell("echo '{\"checkpoint\": 3}' >&$ABLATE_METRICS"));
  Output output;
  while (!output.checkpoint.has_value()) Append(run->Poll(kTestDeadline), &output);
  while (!Children(getpid()).empty()) run->Poll(absl::Milliseconds(10));
  EXPECT_TRUE(run->Poll(absl::InfiniteDuration()).empty());
  run->Reply("ok");
  EXPECT_TRUE(AwaitEnd(run.get()).ended->ok());
}

TEST_F(RunTest, RunsWithoutASandbox) {
  Request request = Shell(
      "pwd; echo '{\"step\": 1, \"a\": 2}' >&$ABLATE_METRICS\n"
      "echo '{\"checkpoint\": 1}' >&$ABLATE_METRICS; read -r answer <&$ABLATE_REPLIES\n"
      "echo \"$answer\"; exit 4");
  request.sandboxed = false;
  const Output output = RunToEnd(request);
  EXPECT_EQ(output.log, work_ + "\nok\n");
  EXPECT_THAT(output.points, ElementsAre(Point{"a", 1, 2}));
  EXPECT_EQ(output.ended->reason, "exit code 4");
  request.command = {"sh", "-c", "kill -SEGV $$"};
  EXPECT_EQ(RunToEnd(request).ended->signal, "SIGSEGV");
  request.command = {"no-such-command"};
  EXPECT_EQ(ReasonOf(request), "command not found: no-such-command");
}

}  // namespace
}  // namespace ablate::program
