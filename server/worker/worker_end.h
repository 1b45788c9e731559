// How a worker's Run comes to its end: it was drained, or its device is lost.
#ifndef ABLATE_SERVER_WORKER_WORKER_END_H_
#define ABLATE_SERVER_WORKER_WORKER_END_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "sync/mutex.h"

namespace ablate::worker {

// Thread-safe.
class WorkerEnd {
 public:
  void Drain();
  // The first loss counts.
  void Lose(const absl::Status& status);
  // OK unless the device is lost.
  absl::Status Lost();
  // Waits for Drain or a loss; what Lost says then.
  absl::Status Wait();

 private:
  Mutex mutex_;
  CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_WORKER_END_H_
