#include "server/report/figure/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "text/clean.h"

namespace ablate::figure {
namespace {

constexpr int kPollMilliseconds = 50;
constexpr size_t kMaxErrorBytes = 2000;  // of stderr, in a message

class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void Take(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// The two ends of a connection: ours and the child's.
struct Ends {
  Descriptor ours, childs;
};

// Sockets, not pipes: a write to a child that has gone is then an error and no signal.
absl::Status Connect(Ends* ends) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return absl::ErrnoToStatus(errno, "can't make a socket pair");
  }
  ends->ours.Take(pair[0]);
  ends->childs.Take(pair[1]);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// A child that is killed and reaped with its owner, unless it was waited for.
class Child {
 public:
  Child() = default;
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  absl::Status Start(const std::string& program, std::vector<std::string> arguments,
                     const std::vector<std::string>& environment, const std::array<int, 3>& fds) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    arguments.insert(arguments.begin(), program);
    const int error = posix_spawn(&pid_, program.c_str(), &actions, &attributes,
                                  Pointers(arguments).data(), Pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return absl::OkStatus();
    pid_ = -1;
    return absl::NotFoundError(
        absl::StrCat("can't start ", program, ": ", absl::ErrnoToStatus(error, "").message()));
  }

  // Whether it has ended, with its status as waitpid gives it.
  bool HasEnded(int* status) {
    if (waitpid(pid_, status, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
  }

 private:
  void Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  pid_t pid_ = -1;
};

// Writes what it can; closes when all is written or nobody reads.
void Feed(Descriptor* to, absl::string_view* rest) {
  const ssize_t written = send(to->get(), rest->data(), rest->size(), MSG_NOSIGNAL);
  if (written > 0) rest->remove_prefix(static_cast<size_t>(written));
  const bool gone = written < 0 && errno != EAGAIN && errno != EINTR;
  if (rest->empty() || gone) to->Close();
}

// Reads what is there; closes at the end.
void Drain(Descriptor* from, std::string* into) {
  std::array<char, 65536> buffer;
  const ssize_t bytes = read(from->get(), buffer.data(), buffer.size());
  if (bytes > 0) into->append(buffer.data(), static_cast<size_t>(bytes));
  if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) from->Close();
}

// CANCELLED or DEADLINE_EXCEEDED if it is to be killed now.
absl::Status CheckLimits(const ProcessLimits& limits, absl::Time end) {
  if (limits.cancelled && limits.cancelled()) return absl::CancelledError("cancelled");
  if (absl::Now() <= end) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("not done after ", absl::FormatDuration(limits.time)));
}

// Carries bytes both ways until the child has closed its ends.
absl::Status Converse(std::array<Ends, 3>* ends, absl::string_view input,
                      const ProcessLimits& limits, absl::Time end, std::string* output,
                      std::string* errors) {
  auto& [in, out, err] = *ends;
  if (input.empty()) in.ours.Close();
  while (out.ours.get() >= 0 || err.ours.get() >= 0) {
    std::array<pollfd, 3> wanted = {pollfd{in.ours.get(), POLLOUT, 0},
                                    pollfd{out.ours.get(), POLLIN, 0},
                                    pollfd{err.ours.get(), POLLIN, 0}};
    poll(wanted.data(), wanted.size(), kPollMilliseconds);
    if (wanted[0].revents != 0) Feed(&in.ours, &input);
    if (wanted[1].revents != 0) Drain(&out.ours, output);
    if (wanted[2].revents != 0) Drain(&err.ours, errors);
    if (errors->size() > kMaxErrorBytes) errors->erase(0, errors->size() - kMaxErrorBytes);
    if (output->size() > limits.output_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the output is larger than ", limits.output_bytes, " bytes"));
    }
    if (absl::Status within = CheckLimits(limits, end); !within.ok()) return within;
  }
  return absl::OkStatus();
}

// A child that has closed its ends mostly ends at once; its status.
absl::StatusOr<int> WaitFor(Child* child, const ProcessLimits& limits, absl::Time end) {
  int status = 0;
  while (!child->HasEnded(&status)) {
    if (absl::Status within = CheckLimits(limits, end); !within.ok()) return within;
    poll(nullptr, 0, 1);
  }
  return status;
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("ended by signal ", WTERMSIG(status));
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<std::string> RunProcess(const std::string& program,
                                       const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& environment,
                                       absl::string_view input, const ProcessLimits& limits) {
  std::array<Ends, 3> ends;
  for (Ends& pair : ends) {
    if (absl::Status connected = Connect(&pair); !connected.ok()) return connected;
  }
  Child child;
  const absl::Status started =
      child.Start(program, arguments, environment,
                  {ends[0].childs.get(), ends[1].childs.get(), ends[2].childs.get()});
  if (!started.ok()) return started;
  for (Ends& pair : ends) pair.childs.Close();
  std::string output, errors;
  const absl::Time end = absl::Now() + limits.time;
  const absl::Status talked = Converse(&ends, input, limits, end, &output, &errors);
  const absl::StatusOr<int> status =
      talked.ok() ? WaitFor(&child, limits, end) : absl::StatusOr<int>(talked);
  if (!status.ok()) {
    return absl::Status(status.status().code(),
                        absl::StrCat(program, ": ", status.status().message()));
  }
  if (*status != 0) {
    return absl::InternalError(
        absl::StrCat(program, ": ", HowItEnded(*status), ": ", text::CleanText(errors)));
  }
  return output;
}

}  // namespace ablate::figure
