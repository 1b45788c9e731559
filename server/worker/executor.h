// Trains one granted run from its start or resume state to its end, and reports what happens.
#ifndef ABLATE_SERVER_WORKER_EXECUTOR_H_
#define ABLATE_SERVER_WORKER_EXECUTOR_H_

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/worker/blob_channel.h"
#include "server/worker/lanes.h"
#include "server/worker/lease_book.h"
#include "server/worker/outbox.h"
#include "server/worker/run_control.h"
#include "server/worker/run_setup.h"

namespace ablate::worker {

struct ExecutorOptions {
  absl::Duration flush_every = absl::Milliseconds(250);
  absl::Duration resume_every = absl::Seconds(30);
  // What one Advance may take, but for the step or the batch of an evaluation that it has begun:
  // bounds how late a flush, a resume state, an end or a heartbeat's step is.
  absl::Duration advance_time = absl::Milliseconds(50);
  // For how long a blob under way may hold back what follows it before the lane waits for it.
  absl::Duration max_hold = absl::Minutes(1);
};

// Thread-safe: every lane calls Execute.
class Executor {
 public:
  Executor(ExecutorOptions options, TrainerFactory make_trainer, BlobChannel* blobs,
           EventSink* events);

  // Blocks until the run has ended, was released (control.Halt) or abandoned. Failures of the run
  // are reported and are OK here; an error says that the device is lost. The calling thread is a
  // prepared lane. Where the run has ended but the server has not yet taken all of its blobs, and
  // they are small, `rest` is set: it waits for that and reports the end. What is passed outlives
  // it.
  absl::Status Execute(const v1::Grant& grant, RunControl& control, JobRest* rest);

 private:
  const ExecutorOptions options_;
  BlobChannel* const blobs_;
  EventSink* const events_;
  RunSetup setup_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_EXECUTOR_H_
