#include "base/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

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

void Detach(int log, SpawnSettings* settings) {
  ResetSignals(POSIX_SPAWN_SETSID, settings);
  posix_spawn_file_actions_t* actions = &settings->actions;
  posix_spawn_file_actions_adddup2(actions, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
  // Last, because the log's descriptor may be this one if the caller has no standard input.
  posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
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
                  std::vector<std::string> environment, int log, pid_t* pid) {
  arguments.insert(arguments.begin(), program);
  SpawnSettings settings;
  Detach(log, &settings);
  return posix_spawn(pid, program.c_str(), &settings.actions, &settings.attributes,
                     Pointers(arguments).data(), Pointers(environment).data());
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
