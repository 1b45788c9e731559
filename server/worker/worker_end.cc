// The state that a worker's end waits for.
#include "server/worker/worker_end.h"

namespace ablate::worker {

void WorkerEnd::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  changed_.SignalAll();
}

void WorkerEnd::Lose(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (lost_.ok()) lost_ = status;
  changed_.SignalAll();
}

absl::Status WorkerEnd::Lost() {
  MutexLock lock(&mutex_);
  return lost_;
}

absl::Status WorkerEnd::Wait() {
  MutexLock lock(&mutex_);
  while (!draining_ && lost_.ok()) changed_.Wait(&mutex_);
  return lost_;
}

}  // namespace ablate::worker
