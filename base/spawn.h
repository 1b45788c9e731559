// Starts a program, in the background or at the other end of a connection.
#ifndef ABLATE_BASE_SPAWN_H_
#define ABLATE_BASE_SPAWN_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace ablate::process {

// Returns this process's environment, each variable as NAME=VALUE.
std::vector<std::string> OwnEnvironment();

// Starts `program` in its own session, so that it outlives this process. Standard output and error
// go to `log`, an open descriptor, and standard input is `input`, /dev/null if that is negative; no
// other descriptor is inherited and no signal is blocked or ignored. The program's name comes
// before `arguments`. Sets `pid`; returns 0, or errno's number if the program can't be started.
int SpawnDetached(const std::string& program, std::vector<std::string> arguments,
                  std::vector<std::string> environment, int log, pid_t* pid, int input = -1);

// Waits until a child that SpawnDetached has started ends, and returns its status as waitpid does.
// Kills it with its session after `timeout`, and returns nothing.
std::optional<int> AwaitChild(pid_t pid, absl::Duration timeout);

// Starts `program` as a child whose standard input and output are `connection`, an open descriptor.
// Standard error is this process's; the rest is as above, without a session.
int SpawnConnected(const std::string& program, std::vector<std::string> arguments,
                   std::vector<std::string> environment, int connection, pid_t* pid);

}  // namespace ablate::process

#endif  // ABLATE_BASE_SPAWN_H_
