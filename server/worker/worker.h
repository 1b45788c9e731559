// Runs a worker process without its flags: attach loop, lanes, and the work of its role on them.
#ifndef ABLATE_SERVER_WORKER_WORKER_H_
#define ABLATE_SERVER_WORKER_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "proto/join/channel.h"
#include "server/worker/analyst.h"
#include "server/worker/attach_loop.h"
#include "server/worker/blob_channel.h"
#include "server/worker/executor.h"
#include "server/worker/lanes.h"
#include "server/worker/memory_gate.h"

namespace ablate::worker {

struct WorkerOptions {
  join::ServerAddress server;
  std::string blob_folder;  // as in BlobChannel
  AttachOptions attach;     // its Hello has the role and the number of lanes, or the most
  // Prepares the calling thread as a lane of the role.
  std::function<absl::Status()> prepare_lane;
  // For a worker that trains:
  ExecutorOptions executor;
  TrainerFactory make_trainer;
  MemoryActions memory;
  // Finds the number of lanes by measuring, from one on.
  bool measure_lanes = false;
  absl::Duration measure_every = absl::Seconds(1);
  std::function<std::optional<v1::DeviceUse>()> device_use;  // for heartbeats; may be null
  absl::Duration drain_timeout = absl::Seconds(10);
  absl::Duration exit_when_idle = absl::InfiniteDuration();  // drains after so long without a lease
  // For a worker that computes analyses:
  AnalysisTools analysis;
};

// Owns the lanes, the attach loop and the work of one role. Thread-safe.
class Worker {
 public:
  explicit Worker(WorkerOptions options);
  // Stops without saving anything that Run hasn't saved. Each lane finishes its current step first.
  ~Worker();

  // Prepares the lanes, attaches and works. Returns OK when drained, by Drain or by the server: it
  // has saved what could be saved and acknowledged within the timeout, and dropped analyses.
  // Returns UNAUTHENTICATED or PERMISSION_DENIED if the server rejects it, possibly later, and
  // another error if the device is lost. After an error lanes may hang or train abandoned runs, and
  // the process should end without the destructor.
  absl::Status Run();
  // Makes Run return after saving; returns at once.
  void Drain();

 private:
  bool trains() const { return options_.attach.hello.role() == v1::TRAIN; }
  AttachRequests Requests();
  Job JobOf(v1::Grant grant);
  Job JobOf(v1::Analyze analyze);
  // Sets the lanes by what a governor measures, until the worker is destroyed.
  void GovernLanes();
  // Records a loss of the device; only the first one counts.
  void Lose(const absl::Status& status);
  absl::Status Lost();
  // Waits for Drain, a loss, or too long a time without a lease. Returns Lost().
  absl::Status WaitForEnd();

  const WorkerOptions options_;
  Mutex mutex_;
  CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<BlobChannel> blobs_;
  AttachLoop loop_;
  Executor executor_;
  Analyst analyst_;
  Lanes lanes_;
  std::thread governor_;  // last member: it uses the others
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_WORKER_H_
