// Finds out whether a worker can run programs, and in which environments.
#ifndef ABLATE_SERVER_WORKER_PROGRAM_HOST_H_
#define ABLATE_SERVER_WORKER_PROGRAM_HOST_H_

#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/statusor.h"
#include "server/launch/program_options.h"
#include "server/worker/program_run.h"

namespace ablate::worker {

struct ProgramOptions {
  std::string mode = launch::kOff;
  std::string folder;                     // for the runs' folders; its content is removed
  std::vector<std::string> environments;  // NAME=PYTHON[:FOLDER…], with absolute paths
  std::string python;  // of the environment `default`, unless `environments` has it
  GpuAccess gpu = {};  // that programs may use
};

// Returns the host of this process. Logs the reason for an environment that it can't offer.
// FAILED_PRECONDITION or INVALID_ARGUMENT with the reason if it can't run programs, also if the
// mode is off, or if a program can't use the GPU. Takes some tenths of a second for each
// environment, and longer for one with many files of data.
absl::StatusOr<ProgramHost> OpenProgramHost(const ProgramOptions& options);

// Adds the host's environments to a worker's trainers, or says why there is none.
void DescribeHost(const absl::StatusOr<ProgramHost>& host, v1::Hello* hello);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_PROGRAM_HOST_H_
