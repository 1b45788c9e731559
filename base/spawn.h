// Starting a program in the background.
#ifndef ABLATE_PROCESS_SPAWN_H_
#define ABLATE_PROCESS_SPAWN_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace ablate::process {

// The variables of this process, each as NAME=VALUE.
std::vector<std::string> OwnEnvironment();

// Starts `program` in a session of its own, so that it outlives this process: standard input from
// /dev/null, standard output and error to `log`, an open descriptor, no other descriptor inherited,
// no signal blocked or ignored. The program's name comes before `arguments`. Sets `pid`; returns
// errno's number if it can't be started, otherwise 0.
int SpawnDetached(const std::string& program, std::vector<std::string> arguments,
                  std::vector<std::string> environment, int log, pid_t* pid);

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_SPAWN_H_
