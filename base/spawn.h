// Starts a program, in the background or at the other end of a connection.
#ifndef ABLATE_BASE_SPAWN_H_
#define ABLATE_BASE_SPAWN_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace ablate::process {

// Returns this process's environment, each variable as NAME=VALUE.
std::vector<std::string> OwnEnvironment();

// Starts `program` in its own session, so that it outlives this process. Standard input is
// /dev/null, standard output and error go to `log`, an open descriptor; no other descriptor is
// inherited and no signal is blocked or ignored. The program's name comes before `arguments`. Sets
// `pid`; returns 0, or errno's number if the program can't be started.
int SpawnDetached(const std::string& program, std::vector<std::string> arguments,
                  std::vector<std::string> environment, int log, pid_t* pid);

// Starts `program` as a child whose standard input and output are `connection`, an open descriptor.
// Standard error is this process's; the rest is as above, without a session.
int SpawnConnected(const std::string& program, std::vector<std::string> arguments,
                   std::vector<std::string> environment, int connection, pid_t* pid);

}  // namespace ablate::process

#endif  // ABLATE_BASE_SPAWN_H_
