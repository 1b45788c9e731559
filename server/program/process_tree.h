// Finds the processes that a process started, by /proc.
#ifndef ABLATE_SERVER_PROGRAM_PROCESS_TREE_H_
#define ABLATE_SERVER_PROGRAM_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::program {

// Returns the children of all threads of a process.
std::vector<pid_t> Children(pid_t pid);

// Returns the descendants of a process, without itself; stops after about `max`.
std::vector<pid_t> Descendants(pid_t pid, size_t max);

// Returns the live processes of this machine whose environment at their start has the variable,
// given as NAME=VALUE. This user must be allowed to read it.
std::vector<pid_t> ProcessesWithVariable(absl::string_view variable);

// Returns the pid of a process in the innermost namespace that has one; 0 if it has ended.
pid_t InnermostPid(pid_t pid);

// Returns true if a process runs a shell, which doesn't forward signals to its commands.
bool IsShell(pid_t pid);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_PROCESS_TREE_H_
