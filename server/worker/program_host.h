// Finds out whether a worker can run programs, and in which environments.
#ifndef ABLATE_SERVER_WORKER_PROGRAM_HOST_H_
#define ABLATE_SERVER_WORKER_PROGRAM_HOST_H_

#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "server/worker/program_run.h"

namespace ablate::worker {

inline constexpr char kSandboxed[] = "sandboxed", kUnsandboxed[] = "unsandboxed", kOff[] = "off";

struct ProgramOptions {
  std::string mode = kOff;
  std::string folder;                     // for the runs' folders; its content is removed
  std::vector<std::string> environments;  // NAME=PYTHON, with an absolute path
  std::string python;  // of the environment `default`, unless `environments` has it
};

// Returns the host of this process. FAILED_PRECONDITION or INVALID_ARGUMENT with the reason if it
// can't run programs, also if the mode is off. Takes some tenths of a second for each environment.
absl::StatusOr<ProgramHost> OpenProgramHost(const ProgramOptions& options);

// Adds the host's environments to a worker's trainers, or says why there is none.
void DescribeHost(const absl::StatusOr<ProgramHost>& host, v1::Hello* hello);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_PROGRAM_HOST_H_
