// The lanes of a device: each does one job at a time, next ones wait in the order in which they
// came.
#ifndef ABLATE_SERVER_WORKER_LANES_H_
#define ABLATE_SERVER_WORKER_LANES_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

// What is left of a job that needs no lane any more, such as what waits for the server. Blocks
// until it is done, or the job is abandoned.
using JobRest = std::function<void()>;

struct Job {
  std::string id;  // of its lease, or of the analysis
  // Does it, on a prepared lane, but for what it leaves: that is done beside the lane's next job,
  // before the rest of that. An error says that the device is lost.
  std::function<absl::Status(RunControl&, JobRest*)> work;
  // Called in place of `work`, and on any thread, where no lane has begun the job: it is drained,
  // or abandoned. Must not block; null: nobody is told.
  std::function<void()> drained = nullptr;
  std::function<void()> abandoned = nullptr;
};

struct LaneActions {
  // Makes the calling thread ready; before its first job.
  std::function<absl::Status()> prepare;
  // Preparing or a job failed in a way that makes the device useless; called once per lane.
  std::function<void(const absl::Status&)> lost;
};

// Thread-safe.
class Lanes {
 public:
  Lanes(int count, LaneActions actions);
  // Abandons every job and waits for the lanes; each ends its present step first.
  ~Lanes();

  // Returns when every lane is ready, or was lost.
  void WaitUntilReady();
  // Puts a job behind those that wait. After Drain it is drained at once.
  void Start(Job job);
  // Forgets a job: takes it out of the queue, or ends it within a step.
  void Abandon(const std::string& id);
  // The same for all.
  void AbandonAll();
  // Halts a job that a lane does; nothing happens to one that waits.
  void Halt(const std::string& id);
  // Asks a job that a lane does to save its state; nothing happens to one that waits.
  void Save(const std::string& id);
  // Drains what waits; what a lane does ends at its next step boundary and saves.
  void Drain();
  // Jobs that lanes do now, or that wait for their rest.
  std::vector<v1::LeaseProgress> Progress() const;

 private:
  // A job that a lane has begun.
  struct Begun {
    Job job;
    RunControl control;  // made when it begins: a lane's idle time is no time without progress
  };
  // A thread that does what a lane's jobs leave, one after the other.
  class Beside;

  void RunLane();
  // Waits for a job and notes it as running, in one, so that no request misses it; null at the end.
  std::shared_ptr<Begun> Next();
  void EndJob(const Begun* begun);
  template <typename Wanted>
  void AbandonIf(const Wanted& wanted);

  const LaneActions actions_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Job> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Begun*> running_ ABSL_GUARDED_BY(mutex_);  // and those whose rest is not done
  int preparing_ ABSL_GUARDED_BY(mutex_);                // lanes that are not ready yet
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_LANES_H_
