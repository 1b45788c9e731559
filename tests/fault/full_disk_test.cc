// The programs on a disk without a free byte.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"
#include "tests/small_disk.h"
#include "tests/test_folder.h"

namespace ablate::e2e {
namespace {

constexpr int kNoDisk = 77;  // exit code of a child that may not mount one

// Whether `ablate up` on a full disk says that it is.
bool SaysSo(const std::string& disk) {
  const std::string home = disk + "/home";
  mkdir(home.c_str(), 0700);
  Fill(disk + "/other");
  const Output output =
      RunProgram({ABLATE_BIN "/ablate", "up"}, "", {{"ABLATE_HOME", home}, {"ABLATE_SERVER", ""}});
  const bool told = output.err.find("the disk of " + home + " is full") != std::string::npos;
  if (!told) fprintf(stderr, "exit code %d, said: %s\n", output.exit_code, output.err.c_str());
  return output.exit_code == 1 && told;
}

TEST(FullDiskTest, IsToldByUp) {
  const TestFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!MountDisk(folder.path())) _exit(kNoDisk);
    _exit(SaysSo(folder.path()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoDisk) GTEST_SKIP() << "no disk may be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ablate::e2e
