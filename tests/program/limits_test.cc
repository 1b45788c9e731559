// Tests that a limit ends a program and is named.
#include "tests/program/run_fixture.h"

namespace ablate::program {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(RunTest, EndsAtTheTimeLimit) {
  Request request = Shell("sleep 1000");
  request.limits.time = absl::Milliseconds(200);
  const Output output = RunToEnd(request);
  EXPECT_EQ(output.ended->limit, "time");
  EXPECT_EQ(output.ended->reason, "time: limit 200ms reached");
  EXPECT_FALSE(output.ended->stopped);
}

TEST_F(RunTest, EndsAtTheMemoryLimit) {
  // Keeps all of a line without an end.
  Request request = Command({"tail", "/dev/zero"});
  request.limits.memory_bytes = 100'000'000;
  const Output output = RunToEnd(request);
  EXPECT_EQ(output.ended->limit, "memory");
  EXPECT_THAT(output.ended->reason, StartsWith("memory: "));
  EXPECT_THAT(output.ended->reason, HasSubstr("B used; limit 100 MB"));
}

TEST_F(RunTest, CountsFilesInMemoryAsMemory) {
  Request request = Shell(
      "head -c 80000000 /dev/zero >/dev/shm/x\n"
      "x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 1000");
  request.limits.memory_bytes = 100'000'000;
  EXPECT_EQ(RunToEnd(request).ended->limit, "memory");
  request = Shell("head -c 80000000 /dev/zero >/dev/shm/x");
  request.limits.memory_bytes = 50'000'000;
  EXPECT_FALSE(RunToEnd(request).ended->ok()) << "it has no room";
}

TEST_F(RunTest, EndsAtTheDiskLimitInManyFiles) {
  Request request =
      Shell("i=0; while true; do i=$((i + 1)); head -c 200000 /dev/zero >file$i; done");
  request.limits.disk_bytes = 5'000'000;
  const Output output = RunToEnd(request);
  EXPECT_EQ(output.ended->limit, "disk");
  EXPECT_THAT(output.ended->reason, HasSubstr("used; limit 5 MB"));
}

TEST_F(RunTest, EndsAtTheDiskLimitInOneFile) {
  Request request = Shell("head -c 50000000 /dev/zero >file");
  request.limits.disk_bytes = 5'000'000;
  EXPECT_EQ(RunToEnd(request).ended->limit, "disk");
  EXPECT_LE(std::filesystem::file_size(work_ + "/file"), 5'000'000u);
}

TEST_F(RunTest, BoundsFilesInTmp) {
  Request request = Shell("for i in 1 2 3; do head -c 400000 /dev/zero >/tmp/$i || exit 7; done");
  request.limits.disk_bytes = 1'000'000;
  EXPECT_EQ(RunToEnd(request).ended->exit_code, 7);
}

TEST_F(RunTest, EndsAtTheProcessesLimit) {
  for (const bool sandboxed : {true, false}) {
    Request request = Shell("while true; do sleep 1000 & done");
    request.sandboxed = sandboxed;
    request.limits.processes = 20;
    const Output output = RunToEnd(request);
    EXPECT_EQ(output.ended->limit, "processes");
    EXPECT_EQ(output.ended->reason, "processes: more than the limit of 20");
  }
}

TEST_F(RunTest, EndsAForkBomb) {
  Request request = Shell("bomb() { bomb & bomb; }; bomb");
  request.limits.processes = 50;
  EXPECT_EQ(RunToEnd(request).ended->limit, "processes");
}

TEST_F(RunTest, LetsAProgramWithinItsLimitsEnd) {
  Request request = Shell("sleep 0.3; echo x >file; sleep 0.1 & wait");
  request.limits = {absl::Seconds(60), 1'000'000'000, 10'000'000, 20};
  const Output output = RunToEnd(request);
  EXPECT_TRUE(output.ended->ok()) << output.ended->reason;
  EXPECT_EQ(output.ended->limit, "");
}

}  // namespace
}  // namespace ablate::program
