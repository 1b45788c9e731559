// Trains one granted run from its start or resume state to its end, and reports its events.
#ifndef ABLATE_SERVER_WORKER_EXECUTOR_H_
#define ABLATE_SERVER_WORKER_EXECUTOR_H_

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/worker/blob_channel.h"
#include "server/worker/lanes.h"
#include "server/worker/lease_book.h"
#include "server/worker/memory_gate.h"
#include "server/worker/outbox.h"
#include "server/worker/program_run.h"
#include "server/worker/run_control.h"
#include "server/worker/run_setup.h"

namespace ablate::worker {

struct ExecutorOptions {
  absl::Duration flush_every = absl::Milliseconds(250);
  absl::Duration resume_every = absl::Seconds(30);  // longer for large states: SaveInterval
  // Target duration of one Advance, which may exceed it by one step or evaluation batch. It bounds
  // the delay of flushes, resume states, ends and the step in heartbeats.
  absl::Duration advance_time = absl::Milliseconds(50);
  // How long a blob being published may hold back later events before the lane waits for it.
  absl::Duration max_hold = absl::Minutes(1);
  // Lanes of the worker, the most that a run takes.
  uint32_t lanes = 1;
  ProgramHost programs;
};

// Returns the time from one saved state to the next: at least `every`, and so long that saving,
// which took `cost`, is at most 2 % of it, but at most ten minutes for that reason.
absl::Duration SaveInterval(absl::Duration every, absl::Duration cost);

// Trains granted runs. Thread-safe: every lane calls Execute.
class Executor {
 public:
  Executor(ExecutorOptions options, TrainerFactory make_trainer, MemoryActions memory,
           BlobChannel* blobs, EventSink* events);

  // Blocks until the run has ended, was released (control.Halt) or abandoned. Failures of the run
  // are reported and return OK; an error means that the device is lost. The calling thread must be
  // a prepared lane. If the run has ended, but small blobs of it haven't reached the server yet,
  // `completion` is set to a function that waits for them and reports the end. The arguments must
  // outlive it.
  absl::Status Execute(const v1::Grant& grant, RunControl& control, Completion* completion);

  // Returns how often a run was out of memory while others train.
  int out_of_memory() const { return gate_.failures(); }

 private:
  absl::Status ExecuteProgram(const v1::Grant& grant, RunControl& control, Completion* completion);

  const ExecutorOptions options_;
  BlobChannel* const blobs_;
  EventSink* const events_;
  RunSetup setup_;
  MemoryGate gate_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_EXECUTOR_H_
