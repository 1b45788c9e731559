// Tests the programs on a disk without a free byte.
#include <sys/stat.h>

#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"
#include "tests/small_disk.h"

namespace ablate::e2e {
namespace {

// Runs `ablate up` on a full disk; returns the line of the first failed check, or 0.
int ComeUpOnAFullDisk(const std::string& disk) {
  const std::string home = disk + "/home";
  mkdir(home.c_str(), 0700);
  Fill(disk + "/other");
  const Output output =
      RunProgram({ABLATE_BIN "/ablate", "up"}, "", {{"ABLATE_HOME", home}, {"ABLATE_SERVER", ""}});
  const bool told = output.err.find("the disk of " + home + " is full") != std::string::npos;
  if (output.exit_code == 1 && told) return 0;
  fprintf(stderr, "exit code %d, said: %s\n", output.exit_code, output.err.c_str());
  return __LINE__;
}

TEST(FullDiskTest, IsToldByUp) { RunOnASmallDisk(ComeUpOnAFullDisk); }

}  // namespace
}  // namespace ablate::e2e
