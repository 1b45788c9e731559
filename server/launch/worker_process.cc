#include "server/launch/worker_process.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/spawn.h"

namespace ablate::launch {
namespace {

constexpr uint64_t kMaxLastLineBytes = 500;

absl::string_view NameOfVariable(absl::string_view variable) {
  return variable.substr(0, variable.find('='));
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

std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& variables) {
  std::vector<std::string> result = variables;
  const auto has = [&result](absl::string_view name) {
    return std::any_of(result.begin(), result.end(), [name](const std::string& variable) {
      return NameOfVariable(variable) == name;
    });
  };
  for (const std::string& variable : process::OwnEnvironment()) {
    if (!has(NameOfVariable(variable))) result.push_back(variable);
  }
  // In the environment, because LibTorch's OpenMP reads it when loaded, before main. A lane is one
  // thread.
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (!has(name)) result.push_back(absl::StrCat(name, "=1"));
  }
  return result;
}

std::string CommandHash(const WorkerCommand& command) {
  struct stat program {};
  // A missing program is hashed as zeros.
  if (stat(command.program.c_str(), &program) != 0) program = {};
  std::string text =
      absl::StrCat(command.program, "\n", program.st_dev, " ", program.st_ino, " ", program.st_size,
                   " ", program.st_mtim.tv_sec, " ", program.st_mtim.tv_nsec);
  // Includes lengths, so that no two lists are equal.
  for (const auto* list : {&command.arguments, &command.environment}) {
    absl::StrAppend(&text, "\n", list->size());
    for (const std::string& entry : *list) {
      absl::StrAppend(&text, "\n", entry.size(), " ", entry);
    }
  }
  return Sha256Hex(text);
}

absl::StatusOr<process::ProcessId> Spawn(const WorkerCommand& command) {
  const process::FileDescriptor log(
      open(command.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  pid_t pid = 0;
  const int error =
      log.open() ? process::SpawnDetached(command.program, command.arguments,
                                          WorkerEnvironment(command.environment), log.get(), &pid)
                 : errno;
  if (error != 0) {
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot start worker ", command.name, ": ", command.program,
                            " with log ", command.log_file));
  }
  // A child that has already ended keeps start time 0, which no later process matches.
  return process::Identify(pid).value_or(process::ProcessId{pid, 0, process::BootId()});
}

ChildExit DescribeExit(absl::string_view worker, const siginfo_t& ended,
                       absl::string_view log_tail) {
  ChildExit exit;
  exit.worker = std::string(worker);
  if (ended.si_code == CLD_EXITED) {
    exit.by_itself = ended.si_status != 0;
    exit.succeeded = ended.si_status == 0;
    exit.device_unusable = ended.si_status == kDeviceUnusableExit;
    exit.device_lost = ended.si_status == kDeviceLostExit;
    exit.last_words = absl::StrCat("exit code ", ended.si_status);
  } else {
    exit.by_itself = IsCrash(ended.si_status);
    exit.last_words = absl::StrCat("killed by ", SignalName(ended.si_status));
  }
  const bool killed = ended.si_code != CLD_EXITED && !exit.by_itself;
  if (!killed && !log_tail.empty()) absl::StrAppend(&exit.last_words, ": ", log_tail);
  return exit;
}

std::string LastLine(const std::string& file, uint64_t from) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const uint64_t size = static_cast<uint64_t>(in.tellg());
  if (from > size) from = 0;  // the log was truncated
  // A line longer than the quoted part shows its beginning, if the window includes it.
  constexpr uint64_t kWindow = 4 * kMaxLastLineBytes;
  const uint64_t start = std::max(from, size > kWindow ? size - kWindow : 0);
  in.seekg(static_cast<std::streamoff>(std::min(start, size)));
  const std::string tail(std::istreambuf_iterator<char>(in), {});
  std::string last;
  for (absl::string_view line : absl::StrSplit(tail, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) last = std::string(line.substr(0, kMaxLastLineBytes));
  }
  return last;
}

absl::Duration RestartDelay(absl::Duration previous, absl::Duration lived) {
  if (lived >= kHealthyLife || previous <= absl::ZeroDuration()) return kMinRestartDelay;
  return std::min(previous * 2, kMaxRestartDelay);
}

int CountDeviceFailures(int before, const ChildExit& exit, bool on_gpu, absl::Duration lived) {
  if (!exit.device_unusable && !(on_gpu && (exit.device_lost || exit.hung))) return 0;
  const absl::Duration worked = exit.hung ? lived - kFoundHung : lived;
  return worked >= kProvenLife ? 1 : before + 1;
}

}  // namespace ablate::launch
