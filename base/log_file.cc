#include "base/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace ablate::process {

uint64_t FileSize(const std::string& file) {
  struct stat info;
  return stat(file.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

absl::StatusOr<FileDescriptor> OpenLog(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its reader.
  FileDescriptor log(open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!log.open()) {
    if (errno != ELOOP) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open log ", path));
    return absl::FailedPreconditionError(absl::StrCat("log ", path, " is a link, must be a file"));
  }
  struct stat info;
  const bool ours = fstat(log.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                    info.st_uid == geteuid() && fcntl(log.get(), F_SETFL, O_APPEND) == 0;
  if (ours) return log;
  return absl::FailedPreconditionError(
      absl::StrCat("log ", path, " is not a file of user ", geteuid()));
}

void BoundLog(const std::string& file, uint64_t max_bytes) {
  if (FileSize(file) > max_bytes) std::rename(file.c_str(), absl::StrCat(file, ".old").c_str());
}

void BoundOwnLog(uint64_t max_bytes) {
  struct stat log;
  const bool is_long = fstat(STDERR_FILENO, &log) == 0 && S_ISREG(log.st_mode) &&
                       static_cast<uint64_t>(log.st_size) > max_bytes;
  if (!is_long) return;
  std::error_code error;
  const std::string path =
      std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", STDERR_FILENO), error).string();
  struct stat there;
  const bool at_its_place = !error && stat(path.c_str(), &there) == 0 &&
                            there.st_dev == log.st_dev && there.st_ino == log.st_ino;
  if (!at_its_place) return;
  struct stat out;
  const bool same_out =
      fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == log.st_dev && out.st_ino == log.st_ino;
  BoundLog(path, max_bytes);
  const auto opened = OpenLog(path);
  if (!opened.ok()) return;  // the renamed file stays in use
  dup2(opened->get(), STDERR_FILENO);
  if (same_out) dup2(opened->get(), STDOUT_FILENO);
}

sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  // Schedulers of clusters announce the end by one of these.
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int AwaitSignal(const sigset_t& signals, const std::function<bool()>& go_on) {
  constexpr timespec kPause{2, 0};
  while (true) {
    BoundOwnLog();
    if (go_on && !go_on()) return 0;
    const int signal = sigtimedwait(&signals, nullptr, &kPause);
    if (signal > 0) return signal;
  }
}

}  // namespace ablate::process
