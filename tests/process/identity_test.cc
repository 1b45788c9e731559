// A process is told apart from others of the same number.
#include "process/identity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ablate::process {
namespace {

TEST(IdentityTest, ReadsBackTheLineItWrites) {
  const auto self = Identify(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(FromLine(ToLine(*self)), self);
  EXPECT_EQ(FromLine(ToLine(*self) + "\nmore\n"), self);
  EXPECT_EQ(self->boot, BootId());
}

TEST(IdentityTest, DiffersByStartAndBoot) {
  const ProcessId self = *Identify(getpid());
  ProcessId earlier = self;
  --earlier.start_ticks;
  ProcessId before_boot = self;
  before_boot.boot = "another";
  EXPECT_NE(earlier, self);
  EXPECT_NE(before_boot, self);
}

TEST(IdentityTest, KnowsNoProcessThatHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_GT(child, 0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(Identify(child).has_value()) << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(Identify(child).has_value());
  EXPECT_FALSE(Identify(0).has_value());
  EXPECT_FALSE(Identify(-1).has_value());
}

TEST(IdentityTest, RefusesLinesThatNameNoProcess) {
  for (const char* line : {"", "0", "17", "17 5", "17 5 ", "0 5 boot", "-1 5 boot", "x 5 boot",
                           "17 y boot", "17 5 boot more", "99999999999 5 boot", "\n17 5 boot"}) {
    EXPECT_FALSE(FromLine(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace ablate::process
