// One attached stream, as whoever talks to its worker sees it.
#ifndef ABLATE_SERVER_SCHEDULE_WORKER_STREAM_H_
#define ABLATE_SERVER_SCHEDULE_WORKER_STREAM_H_

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"

namespace ablate::schedule {

// Thread-safe. Calls must neither block nor call the scheduler.
class WorkerStream {
 public:
  virtual ~WorkerStream() = default;
  virtual void Send(const worker::v1::ToWorker& message) = 0;
  // Ends the stream; the worker may come back with a new one.
  virtual void Close(const absl::Status& why) = 0;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_WORKER_STREAM_H_
