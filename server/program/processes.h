// Reads from /proc which processes a process started, and their memory.
#ifndef ABLATE_SERVER_PROGRAM_PROCESSES_H_
#define ABLATE_SERVER_PROGRAM_PROCESSES_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::program {

// Returns the children of all threads of a process; those of a thread in the order of their start,
// and adopted ones last.
std::vector<pid_t> Children(pid_t pid);

// Returns the descendants of a process, without itself; stops after about `max`.
std::vector<pid_t> Descendants(pid_t pid, size_t max);

// Returns the live processes of this machine whose environment at their start has the variable,
// given as NAME=VALUE. This user must be allowed to read it.
std::vector<pid_t> ProcessesWithVariable(absl::string_view variable);

// Returns true if a process runs a shell, which doesn't forward signals to its commands.
bool IsShell(pid_t pid);

// Returns the resident memory in bytes, in which shared pages count once per process. Cheap.
uint64_t ResidentBytes(const std::vector<pid_t>& pids);

struct Memory {
  uint64_t bytes = 0;   // in which the processes share the pages that they have in common
  uint64_t shared = 0;  // part of it: shared memory, such as mapped files of /dev/shm
};
// Returns the proportional memory; the resident memory of a process whose proportional memory the
// kernel doesn't report. Reads every mapping's pages: milliseconds per gigabyte.
Memory ProportionalMemory(const std::vector<pid_t>& pids);

// Returns the bytes in the sandbox's folders in memory, /tmp and /dev/shm; `pid` is in the sandbox.
uint64_t MemoryFolderBytes(pid_t pid);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_PROCESSES_H_
