// A disk that is easily filled, for a process of a test's own.
#ifndef ABLATE_TESTS_SMALL_DISK_H_
#define ABLATE_TESTS_SMALL_DISK_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/test_folder.h"

namespace ablate {

// Mounts a disk of 24 MB on the folder, for this process only. Returns false if that isn't allowed.
inline bool MountDisk(const std::string& folder) {
  const auto map = [](unsigned id) { return "0 " + std::to_string(id) + " 1"; };
  const std::string users = map(geteuid()), groups = map(getegid());
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << users;
    std::ofstream("/proc/self/gid_map") << groups;
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=24m") == 0;
}

// Writes into the file until nothing more fits.
inline void Fill(const std::string& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  for (size_t size = 1 << 20; size > 0; size /= 2) {
    const std::string bytes(size, 'x');
    while (write(descriptor, bytes.data(), size) > 0) {
    }
  }
  close(descriptor);
}

// Runs `live` in a process that has a disk of 24 MB of its own: it returns the line of the first
// failed check, or 0. Skips the test if no disk may be mounted.
inline void RunOnASmallDisk(int (*live)(const std::string& disk)) {
  constexpr int kFailed = 1, kNoDisk = 77;  // exit codes
  const TestFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!MountDisk(folder.path())) _exit(kNoDisk);
    const int line = live(folder.path());
    if (line > 0) fprintf(stderr, "line %d is not as it should be\n", line);
    _exit(line > 0 ? kFailed : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoDisk) GTEST_SKIP() << "no disk may be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace ablate

#endif  // ABLATE_TESTS_SMALL_DISK_H_
