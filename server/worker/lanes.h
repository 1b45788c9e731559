// Runs jobs on the lanes (training slots) of a device. A job takes one lane or several; others wait
// in order of arrival.
#ifndef ABLATE_SERVER_WORKER_LANES_H_
#define ABLATE_SERVER_WORKER_LANES_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/worker/lane_governor.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

// The completion of a job, which needs no lane, such as waiting for the server. Blocks until it is
// done or the job is abandoned.
using Completion = std::function<void()>;

// A job of a lane: a run or an analysis.
struct Job {
  std::string id;  // of its lease or analysis
  // Runs the job on a prepared lane. It may set a completion, which runs in a separate thread while
  // the lane runs its next job, and before that job's completion. An error means that the device is
  // lost.
  std::function<absl::Status(RunControl&, Completion*)> work;
  // Called instead of `work`, on any thread, if the job is drained or abandoned before a lane has
  // begun it. Must not block; may be null.
  std::function<void()> drained = nullptr;
  std::function<void()> abandoned = nullptr;
  // Number of lanes that it takes; as many as the limit if it is larger.
  int lanes = 1;
};

// Functions that the lanes call.
struct LaneActions {
  // Prepares the calling thread, before its first job.
  std::function<absl::Status()> prepare;
  // Preparing or a job has failed so that the device is unusable; called once per lane.
  std::function<void(const absl::Status&)> lost;
};

// Owns the lanes' threads. Thread-safe.
class Lanes {
 public:
  // There are at most `count` lanes, and `limit` at first.
  Lanes(int count, LaneActions actions, int limit);
  Lanes(int count, LaneActions actions) : Lanes(count, std::move(actions), count) {}
  // Abandons every job and waits for the lanes; each finishes its current step first.
  ~Lanes();

  // Changes the number of lanes that jobs may take from now on, at most `count`. Running jobs
  // aren't affected. New lanes are prepared in the background.
  void SetLimit(int limit);
  int limit() const;
  // Returns when every lane is ready or lost.
  void WaitUntilReady();
  // Appends a job to the queue. After Drain the job is drained at once.
  void Start(Job job);
  // Abandons a job: removes it from the queue, or ends it within a step.
  void Abandon(const std::string& id);
  // Abandons all jobs.
  void AbandonAll();
  // Halts a running job; does nothing to a waiting one.
  void Halt(const std::string& id);
  // Asks a running job to save its state; does nothing to a waiting one.
  void Save(const std::string& id);
  // Drains waiting jobs. Running jobs end at their next step boundary and save their state.
  void Drain();
  // Returns the progress of jobs that run or whose completion hasn't finished.
  std::vector<v1::LeaseProgress> Progress() const;
  // Returns the jobs that take lanes, with their steps.
  std::vector<LaneJob> OnLanes() const;

 private:
  // A job that a lane has begun.
  struct Begun {
    Job job;
    RunControl control;  // created when the job begins, so that a lane's idle time doesn't count as
                         // time without progress
    int lanes = 0;       // that it takes; 0 once its work is done. Guarded by the lock
  };
  // A thread that runs the completions of a lane's jobs, in order.
  class CompletionThread;

  void RunLane();
  // Waits for a job and marks it as running, atomically, so that no request misses it. Returns null
  // at the end.
  std::shared_ptr<Begun> Next();
  int LanesOf(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the lanes of a job whose work is done.
  void FreeLanes(Begun& begun);
  void EndJob(const Begun* begun);
  template <typename Wanted>
  void AbandonIf(const Wanted& wanted);

  const int count_;
  const LaneActions actions_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Job> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Begun*> running_ ABSL_GUARDED_BY(mutex_);  // includes jobs whose completion hasn't
                                                         // finished
  int limit_ ABSL_GUARDED_BY(mutex_) = 1;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;      // lanes
  int preparing_ ABSL_GUARDED_BY(mutex_) = 0;  // lanes that aren't ready yet
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);  // last member: they use the others
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LANES_H_
