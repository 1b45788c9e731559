// The process of a personal server: found, started in the background, recognised and ended.
#include "client/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 forgot to say that these are C functions
}

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "process/identity.h"

extern char** environ;

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServerName = "ablated";

bool IsProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// Attributes and file actions of posix_spawn, freed at the end.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

void DetachFromTerminal(int log, SpawnSettings* settings) {
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings->attributes, &none);
  posix_spawnattr_setsigdefault(&settings->attributes, &all);
  posix_spawnattr_setflags(&settings->attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t* actions = &settings->actions;
  posix_spawn_file_actions_adddup2(actions, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
  // Last, for the log's descriptor may be this one where the caller has no standard input.
  posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
}

}  // namespace

absl::StatusOr<std::string> FindServerProgram(const Environment& environment) {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / kServerName;
  if (IsProgram(beside)) return beside.string();
  for (const absl::string_view folder :
       absl::StrSplit(environment("PATH").value_or(""), ':', absl::SkipEmpty())) {
    const fs::path candidate = fs::path(std::string(folder)) / kServerName;
    if (IsProgram(candidate)) return candidate.string();
  }
  return absl::NotFoundError(
      absl::StrCat("no program ", kServerName, ", neither ", beside.string(), " nor on PATH"));
}

std::optional<std::string> Child::Ended() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return WIFEXITED(status) ? absl::StrCat("exit code ", WEXITSTATUS(status))
                           : absl::StrCat("killed by signal ", WTERMSIG(status));
}

absl::StatusOr<Child> SpawnServer(const std::string& program,
                                  const std::vector<std::string>& arguments, int log) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  SpawnSettings settings;
  DetachFromTerminal(log, &settings);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                                argv.data(), environ);
  if (error != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(program, " can't be started: ", std::strerror(error)));
  }
  return Child(pid);
}

absl::StatusOr<ServerProcess> ServerProcess::Find(const Home& home) {
  std::ifstream in(home.pid_file);
  std::string line;
  std::getline(in, line);
  const absl::Status none = absl::NotFoundError(absl::StrCat("no server runs in ", home.folder));
  const auto written = process::FromLine(line);
  if (!written) return none;
  const int descriptor = pidfd_open(written->pid, 0);
  if (descriptor < 0) return none;
  // Looked at after the descriptor holds on to the process: it can't become another one.
  ServerProcess process(written->pid, descriptor);
  if (process::Identify(written->pid) != written) return none;
  return process;
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(other.pid_), descriptor_(std::exchange(other.descriptor_, -1)) {}

ServerProcess::~ServerProcess() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status ServerProcess::AskToEnd() {
  if (pidfd_send_signal(descriptor_, SIGTERM, nullptr, 0) == 0 || errno == ESRCH) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("process ", pid_, " can't be ended: ", std::strerror(errno)));
}

bool ServerProcess::WaitUntilGone(absl::Duration patience) {
  pollfd ended{descriptor_, POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 1;
}

std::vector<std::string> LastLines(const std::string& path, uint64_t offset, size_t most) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(in, line)) {
    if (lines.size() == most) lines.erase(lines.begin());
    lines.push_back(line);
  }
  return lines;
}

}  // namespace ablate::client
