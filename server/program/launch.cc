#include "server/program/launch.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

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
  const Launch& launch;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<int> descriptors;
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
  int target = 0;
  for (const int source : child.descriptors) {
    if (dup2(source, target++) < 0) return false;
  }
  // Fails before Linux 5.11, where only descriptors that were opened without O_CLOEXEC remain.
  close_range(static_cast<unsigned>(target), UINT_MAX, CLOSE_RANGE_CLOEXEC);
  return true;
}

void SetLimits(uint64_t max_file_bytes) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit files = {max_file_bytes, max_file_bytes};
  if (max_file_bytes > 0) setrlimit(RLIMIT_FSIZE, &files);
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t ignored = write(file, "500", 3);
  close(file);
}

[[noreturn]] void RunChild(Child& child) {
  ResetSignals();
  // A keyring of its own, empty: programs must not read the worker's keys.
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.parent) _exit(127);
  SetLimits(child.launch.max_file_bytes);
  if (PlaceDescriptors(child) && chdir(child.launch.folder.c_str()) == 0) {
    environ = child.environment.data();  // its PATH finds the program
    execvp(child.arguments[0], child.arguments.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = write(child.error, &error, sizeof(error));
  _exit(127);
}

}  // namespace

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "can't make a pipe");
  return Pipe{process::FileDescriptor(ends[0]), process::FileDescriptor(ends[1])};
}

void SetNonBlocking(const process::FileDescriptor& end) {
  fcntl(end.get(), F_SETFL, fcntl(end.get(), F_GETFL) | O_NONBLOCK);
}

bool ReadAvailable(const process::FileDescriptor& end, size_t max_bytes, std::string* to) {
  std::array<char, 64 << 10> bytes;
  for (size_t taken = 0; taken < max_bytes;) {
    const ssize_t size = read(end.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    to->append(bytes.data(), static_cast<size_t>(size));
    taken += static_cast<size_t>(size);
  }
  return true;
}

int PollMilliseconds(absl::Duration wait) {
  if (wait == absl::InfiniteDuration()) return -1;
  const int64_t whole = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(whole, 0, INT_MAX));
}

bool AwaitReadable(int descriptor, absl::Duration wait) {
  pollfd event{descriptor, POLLIN, 0};
  return poll(&event, 1, PollMilliseconds(wait)) > 0;
}

absl::StatusOr<pid_t> Fork(const Launch& launch) {
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  Child child = {.launch = launch,
                 .arguments = Pointers(launch.arguments),
                 .environment = Pointers(launch.environment),
                 .descriptors = launch.descriptors,
                 .parent = getpid(),
                 .error = errors.write.get()};
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
  return absl::ErrnoToStatus(error, absl::StrCat("can't start ", launch.arguments[0]));
}

}  // namespace ablate::program
