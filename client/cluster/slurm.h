// Starts pilots as Slurm jobs, by sbatch, squeue and scancel alone. Slurm's accounting isn't
// needed.
#ifndef ABLATE_CLIENT_CLUSTER_SLURM_H_
#define ABLATE_CLIENT_CLUSTER_SLURM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cluster/launcher.h"

namespace ablate::client {

struct SlurmOptions {
  std::string cluster;                // the jobs' names begin with it and a hyphen
  std::string join;                   // absolute path of the workers' join file
  std::string worker;                 // program of the workers
  std::string device = "cpu";         // or cuda
  uint32_t lanes = 0;                 // of a worker; 0: a lane per core of the job, or by measuring
  std::string worker_options;         // more of them, as a part of a shell line
  std::vector<std::string> prologue;  // lines of the script before the worker
  std::vector<std::string> skip;      // directives to leave out, such as no-requeue
  std::string log_folder;             // absolute; its file is NAME.log
  std::string idle = "5m";            // as --exit-when-idle of the worker
  std::vector<std::string> sbatch;    // options of sbatch
};

// Returns the words of sbatch's command line, and the script of a pilot. The job's name comes last
// on the line, because it is how the pilot is found again.
std::vector<std::string> SbatchLine(const SlurmOptions& options, const std::string& worker);
std::string PilotScript(const SlurmOptions& options, const std::string& worker, bool stays);

// Reads what `squeue -h -o '%i|%T|%r|%j'` prints. Other lines, such as warnings, and jobs with
// other names are left out, and so are jobs that are ending.
std::vector<LaunchedPilot> ReadSqueue(absl::string_view output, const std::string& cluster);

class SlurmLauncher : public Launcher {
 public:
  using Run = std::function<absl::StatusOr<std::string>(const std::vector<std::string>& words,
                                                        absl::string_view input)>;
  // `run` is process::RunTool; tests have their own.
  SlurmLauncher(SlurmOptions options, Run run);

  absl::StatusOr<std::vector<LaunchedPilot>> List() override;
  absl::Status Start(const std::string& worker, bool stays) override;
  absl::Status End(const LaunchedPilot& pilot) override;

 private:
  const SlurmOptions options_;
  const Run run_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CLUSTER_SLURM_H_
