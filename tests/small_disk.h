// A disk that is easily filled, for a process that a test forks.
#ifndef ABLATE_TESTS_SMALL_DISK_H_
#define ABLATE_TESTS_SMALL_DISK_H_

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace ablate {

// Mounts a disk of 24 MB on the folder, for this process alone. False where that is not allowed.
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

}  // namespace ablate

#endif  // ABLATE_TESTS_SMALL_DISK_H_
