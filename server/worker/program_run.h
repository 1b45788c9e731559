// Runs a granted run that is a program: unpacks its files, starts it, reports what it logs, stores
// its state and output, ends it.
#ifndef ABLATE_SERVER_WORKER_PROGRAM_RUN_H_
#define ABLATE_SERVER_WORKER_PROGRAM_RUN_H_

#include <map>
#include <memory>
#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/program/environment.h"
#include "server/program/warm_start.h"
#include "server/worker/blob_channel.h"
#include "server/worker/gpu_access.h"
#include "server/worker/program_data.h"
#include "server/worker/run_control.h"
#include "server/worker/run_report.h"

namespace ablate::worker {

// Holds the folders and environments that a worker has for programs.
struct ProgramHost {
  // By name; empty if the worker takes no programs.
  std::map<std::string, program::Environment> environments;
  std::string folder;   // of the runs' folders; exists, and only this worker uses it
  std::string helpers;  // as program::Request's
  std::shared_ptr<ProgramData> data;
  bool sandboxed = true;
  GpuAccess gpu;                             // that programs may use
  std::shared_ptr<program::WarmPool> warm;   // null: each run starts an interpreter of its own
  absl::Duration grace = absl::Seconds(30);  // from SIGTERM to SIGKILL
};

// Blocks until the run has ended, was released (control.Halt), interrupted or abandoned. An error
// says why the run failed: it is the caller's to report. The run's folder is removed in any case. A
// program that must stop gets SIGTERM, and may still store its state, unless the run is abandoned.
absl::Status RunProgram(const ProgramHost& host, const v1::Grant& grant, RunControl& control,
                        BlobChannel* blobs, RunReport* report);

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_PROGRAM_RUN_H_
