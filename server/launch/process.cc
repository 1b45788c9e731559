// posix_spawn, pid files that survive the reuse of process numbers, and the tail of a log.
#include "server/launch/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/launch/replace_file.h"
#include "storage/sha256.h"

extern char** environ;

namespace ablate::launch {
namespace {

constexpr uint64_t kLastLineBytes = 500;

std::string ReadWholeFile(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void Detach(const std::string& log_file) {
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// LibTorch's OpenMP reads its thread count when it is loaded, before main: a lane is one thread.
std::vector<std::string> WorkerEnvironment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (getenv(name) == nullptr) result.push_back(absl::StrCat(name, "=1"));
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

bool IsCrash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE ||
         signal == SIGILL;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<ProcessId> Spawn(const WorkerCommand& command) {
  std::vector<std::string> arguments = {command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment = WorkerEnvironment();
  SpawnSettings settings;
  settings.Detach(command.log_file);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, command.program.c_str(), settings.actions(), settings.attributes(),
                  Pointers(arguments).data(), Pointers(environment).data());
  if (error != 0) {
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot start worker ", command.name, ": ", command.program,
                            " with log ", command.log_file));
  }
  // A child that has already ended keeps 0, which no later process matches.
  const auto found = process::Identify(pid);
  return ProcessId{found.value_or(process::ProcessId{pid, 0, process::BootId()}),
                   CommandHash(command)};
}

std::optional<ProcessId> FindByPidFile(const std::string& file) {
  const std::string text = ReadWholeFile(file);
  const auto written = process::FromLine(text);
  if (!written || process::Identify(written->pid) != written) return std::nullopt;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  return ProcessId{*written, std::string(lines.size() > 1 ? lines[1] : "")};
}

absl::Status WritePidFile(const std::string& file, const ProcessId& process) {
  return ReplaceFile(file, absl::StrCat(process::ToLine(process), "\n", process.command, "\n"));
}

std::string CommandHash(const WorkerCommand& command) {
  struct stat program {};
  // Of a program that is not there, nothing distinguishes.
  if (stat(command.program.c_str(), &program) != 0) program = {};
  std::string text =
      absl::StrCat(command.program, "\n", program.st_dev, " ", program.st_ino, " ", program.st_size,
                   " ", program.st_mtim.tv_sec, " ", program.st_mtim.tv_nsec);
  // Their lengths too, so that no two lists of arguments look the same.
  for (const std::string& argument : command.arguments) {
    absl::StrAppend(&text, "\n", argument.size(), " ", argument);
  }
  return storage::Sha256Hex(text);
}

ChildExit DescribeExit(absl::string_view worker, const siginfo_t& ended,
                       absl::string_view log_tail) {
  ChildExit exit;
  exit.worker = std::string(worker);
  if (ended.si_code == CLD_EXITED) {
    exit.by_itself = ended.si_status != 0;
    exit.last_words = absl::StrCat("exit code ", ended.si_status);
  } else {
    exit.by_itself = IsCrash(ended.si_status);
    exit.last_words = absl::StrCat("killed by ", SignalName(ended.si_status));
  }
  if (!log_tail.empty()) absl::StrAppend(&exit.last_words, ": ", log_tail);
  return exit;
}

std::string LastLine(const std::string& file, uint64_t from) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const uint64_t size = static_cast<uint64_t>(in.tellg());
  if (from > size) from = 0;  // the log was begun anew
  // A line longer than what is quoted shows its beginning, if the window reaches it.
  constexpr uint64_t kWindow = 4 * kLastLineBytes;
  const uint64_t start = std::max(from, size > kWindow ? size - kWindow : 0);
  in.seekg(static_cast<std::streamoff>(std::min(start, size)));
  const std::string tail(std::istreambuf_iterator<char>(in), {});
  std::string last;
  for (absl::string_view line : absl::StrSplit(tail, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) last = std::string(line.substr(0, kLastLineBytes));
  }
  return last;
}

}  // namespace ablate::launch
