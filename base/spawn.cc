#include "base/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "base/clock.h"
#include "base/file.h"

// glibc 2.36 doesn't declare these with C linkage.
extern "C" {
#include <sys/pidfd.h>
}

extern char** environ;

namespace ablate::process {
namespace {

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

// `more` are flags of posix_spawnattr_setflags.
void ResetSignals(int more, SpawnSettings* settings) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings->attributes, &none);
  posix_spawnattr_setsigdefault(&settings->attributes, &all);
  posix_spawnattr_setflags(
      &settings->attributes,
      static_cast<int16_t>(more | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

void Detach(int input, int log, SpawnSettings* settings) {
  ResetSignals(POSIX_SPAWN_SETSID, settings);
  posix_spawn_file_actions_t* actions = &settings->actions;
  if (input >= 0) posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(actions, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
  // Last, because the log's descriptor may be this one if the caller has no standard input.
  if (input < 0) posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
}

// Returns pointers to the strings, with a null at the end.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

int SpawnDetached(const std::string& program, std::vector<std::string> arguments,
                  std::vector<std::string> environment, int log, pid_t* pid, int input) {
  arguments.insert(arguments.begin(), program);
  SpawnSettings settings;
  Detach(input, log, &settings);
  return posix_spawn(pid, program.c_str(), &settings.actions, &settings.attributes,
                     Pointers(arguments).data(), Pointers(environment).data());
}

std::optional<int> AwaitChild(pid_t pid, absl::Duration timeout) {
  const FileDescriptor pidfd(pidfd_open(pid, 0));
  const absl::Duration deadline = MonotonicNow() + timeout;
  bool ended = false;
  while (!ended && pidfd.open() && MonotonicNow() < deadline) {
    pollfd event{pidfd.get(), POLLIN, 0};
    const absl::Duration left = absl::Ceil(deadline - MonotonicNow(), absl::Milliseconds(1));
    ended = poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) == 1;
  }
  if (ended) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
  kill(-pid, SIGKILL);  // it leads a session of its own
  // A process that hangs in a driver doesn't end by that.
  constexpr int kReapMs = 1000;
  pollfd event{pidfd.get(), POLLIN, 0};
  if (!pidfd.open() || poll(&event, 1, kReapMs) == 1) waitpid(pid, nullptr, WNOHANG);
  return std::nullopt;
}

int SpawnConnected(const std::string& program, std::vector<std::string> arguments,
                   std::vector<std::string> environment, int connection, pid_t* pid) {
  arguments.insert(arguments.begin(), program);
  SpawnSettings settings;
  ResetSignals(0, &settings);
  posix_spawn_file_actions_adddup2(&settings.actions, connection, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&settings.actions, connection, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, STDERR_FILENO + 1);
  return posix_spawn(pid, program.c_str(), &settings.actions, &settings.attributes,
                     Pointers(arguments).data(), Pointers(environment).data());
}

}  // namespace ablate::process
