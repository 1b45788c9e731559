// Measures the memory of processes and the size of folders.
#ifndef ABLATE_SERVER_PROGRAM_USAGE_H_
#define ABLATE_SERVER_PROGRAM_USAGE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ablate::program {

// Returns the resident memory in bytes, in which shared pages count once per process. Cheap.
uint64_t ResidentBytes(const std::vector<pid_t>& pids);

struct Memory {
  uint64_t bytes = 0;   // in which the processes share the pages that they have in common
  uint64_t shared = 0;  // part of it: shared memory, such as mapped files of /dev/shm
};
// Returns the proportional memory, or resident memory of processes for which the kernel doesn't say
// it. Reads every mapping's pages: milliseconds per gigabyte.
Memory ProportionalMemory(const std::vector<pid_t>& pids);

// Returns the bytes in the sandbox's folders in memory, /tmp and /dev/shm; `pid` is in the sandbox.
uint64_t MemoryFolderBytes(pid_t pid);

struct FolderSize {
  uint64_t bytes = 0;    // on disk; a file with several names counts for each
  bool complete = true;  // false: not all files were counted
};
// Returns the size of the files in a folder and its subfolders, without following links. Visits at
// most `max_files`, and 64 levels of folders.
FolderSize MeasureFolder(const std::string& folder, size_t max_files);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_USAGE_H_
