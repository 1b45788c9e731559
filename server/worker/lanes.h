// The lanes of a device: each trains one run at a time, next ones wait in the order of their grant.
#ifndef ABLATE_SERVER_WORKER_LANES_H_
#define ABLATE_SERVER_WORKER_LANES_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "server/worker/lease_book.h"
#include "server/worker/run_control.h"
#include "sync/mutex.h"

namespace ablate::worker {

struct LaneActions {
  // Makes the calling thread ready to train; before its first run.
  std::function<absl::Status()> prepare;
  // Trains a run; see Executor::Execute.
  std::function<absl::Status(const Instructions::LeasedRun&, RunControl&)> execute;
  // Gives a run back that no lane has begun.
  std::function<void(const Instructions::LeasedRun&)> release;
  // Preparing or training failed in a way that makes the device useless; called once per lane.
  std::function<void(const absl::Status&)> lost;
};

// Thread-safe.
class Lanes {
 public:
  Lanes(int count, LaneActions actions);
  // Abandons every run and waits for the lanes; each ends its present step first.
  ~Lanes();

  // Returns when every lane is ready, or was lost.
  void WaitUntilReady();
  // Puts a run behind those that wait. After Drain it is released at once.
  void Start(Instructions::LeasedRun leased);
  // Forgets a run: takes it out of the queue, or ends it within a step.
  void Abandon(const Instructions::RunKey& key);
  // Releases what waits; what trains ends at its next step boundary, saves and is released.
  void Drain();
  // Runs that lanes are training now, by lease.
  std::vector<v1::LeaseProgress> Progress() const;

 private:
  struct Running {
    const Instructions::LeasedRun* leased;
    RunControl* control;
  };

  void RunLane();
  // Waits for a run and notes it as running, in one, so that no request misses it; false at the
  // end.
  bool Next(Instructions::LeasedRun* leased, std::optional<RunControl>* control);
  void EndRun(const RunControl* control);

  const LaneActions actions_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Instructions::LeasedRun> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Running> running_ ABSL_GUARDED_BY(mutex_);
  int preparing_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LANES_H_
