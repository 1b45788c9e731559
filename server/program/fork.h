// Starts a program with given descriptors, which ends with the thread that started it.
#ifndef ABLATE_SERVER_PROGRAM_FORK_H_
#define ABLATE_SERVER_PROGRAM_FORK_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ablate::program {

struct Launch {
  std::string file;                      // path of the program
  std::vector<std::string> arguments;    // with the program's name
  std::vector<std::string> environment;  // each NAME=VALUE
  std::string folder;                    // the working folder
  std::vector<int> descriptors;          // become 0, 1, 2, …; no others are inherited
  uint64_t max_file_bytes = 0;           // 0: no limit
};

// Starts the program as a child in a session of its own, with default signals and without core
// dumps. The kernel kills it when the calling thread ends, and prefers it to this process when
// memory runs out. Returns its pid after exec has succeeded, else exec's error.
absl::StatusOr<pid_t> Fork(const Launch& launch);

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_FORK_H_
