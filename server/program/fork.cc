#include "server/program/fork.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/program/pipe.h"

namespace ablate::program {
namespace {

constexpr int kFirstSpare = 64;  // above all descriptors that a program gets

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Everything that the child needs, made before the fork.
struct Child {
  const char* file;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const char* folder;
  std::vector<int> descriptors;
  rlim_t max_file_bytes;
  pid_t parent;
  int error;
};

// The functions from here to RunChild run between fork and exec: they call only functions that are
// safe in a signal handler, because another thread may have held any lock.

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool PlaceDescriptors(Child& child) {
  child.error = fcntl(child.error, F_DUPFD_CLOEXEC, kFirstSpare);
  if (child.error < 0) return false;
  // A source may have the number of another one's target.
  for (int& source : child.descriptors) {
    source = fcntl(source, F_DUPFD_CLOEXEC, kFirstSpare);
    if (source < 0) return false;
  }
  const int count = static_cast<int>(child.descriptors.size());
  for (int target = 0; target < count; ++target) {
    if (dup2(child.descriptors[static_cast<size_t>(target)], target) < 0) return false;
  }
  // Fails before Linux 5.11, where only descriptors that were opened without O_CLOEXEC remain.
  close_range(static_cast<unsigned>(count), UINT_MAX, CLOSE_RANGE_CLOEXEC);
  return true;
}

void SetLimits(const Child& child) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit files = {child.max_file_bytes, child.max_file_bytes};
  if (child.max_file_bytes > 0) setrlimit(RLIMIT_FSIZE, &files);
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t ignored = write(file, "500", 3);
  close(file);
}

[[noreturn]] void RunChild(Child& child) {
  ResetSignals();
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.parent) _exit(127);
  SetLimits(child);
  if (PlaceDescriptors(child) && chdir(child.folder) == 0) {
    execvpe(child.file, child.arguments.data(), child.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = write(child.error, &error, sizeof(error));
  _exit(127);
}

}  // namespace

absl::StatusOr<pid_t> Fork(const Launch& launch) {
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  Child child = {launch.file.c_str(),
                 Pointers(launch.arguments),
                 Pointers(launch.environment),
                 launch.folder.c_str(),
                 launch.descriptors,
                 launch.max_file_bytes,
                 getpid(),
                 errors.write.get()};
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "can't start a process");
  if (pid == 0) RunChild(child);
  errors.write.Close();
  int error = 0;
  ssize_t size = 0;
  do {
    size = read(errors.read.get(), &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  if (size == 0) return pid;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return absl::ErrnoToStatus(error, absl::StrCat("can't start ", launch.file));
}

}  // namespace ablate::program
