// A worker process without its flags: lanes, executor and attach loop put together.
#ifndef ABLATE_SERVER_WORKER_WORKER_H_
#define ABLATE_SERVER_WORKER_WORKER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/worker/attach_loop.h"
#include "server/worker/blob_channel.h"
#include "server/worker/executor.h"
#include "server/worker/lanes.h"
#include "server/worker/worker_end.h"

namespace ablate::worker {

struct WorkerOptions {
  std::string server;    // gRPC address, such as unix:PATH
  AttachOptions attach;  // its Hello also says how many lanes there are
  ExecutorOptions executor;
  absl::Duration drain_patience = absl::Seconds(10);
  TrainerFactory make_trainer;
  // Makes the calling thread ready to train.
  std::function<absl::Status()> prepare_lane;
};

// Thread-safe.
class Worker {
 public:
  explicit Worker(WorkerOptions options);
  // Leaves without saving anything that Run has not saved. Each lane ends its present step first.
  ~Worker();

  // Prepares the lanes, attaches and works. OK when it was drained, by Drain or by the server: what
  // could be saved and acknowledged within the patience is. An error if the device is lost: lanes
  // may then hang, and the process should end without the destructor.
  absl::Status Run();
  // Makes Run return after saving; returns at once.
  void Drain() { end_.Drain(); }

 private:
  LaneActions Actions();
  LaneRequests Requests();

  const WorkerOptions options_;
  WorkerEnd end_;
  const std::unique_ptr<BlobChannel> blobs_;
  AttachLoop loop_;
  Executor executor_;
  Lanes lanes_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_WORKER_H_
