// Passes requests to a run while a lane trains it: save the state, end at the next step boundary,
// or abandon it.
#ifndef ABLATE_SERVER_WORKER_RUN_CONTROL_H_
#define ABLATE_SERVER_WORKER_RUN_CONTROL_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace ablate::worker {

// Holds the requests to one run, and its progress. Thread-safe: one lane trains, the attach loop
// and the main thread make requests.
class RunControl {
 public:
  RunControl();

  // Ends training at the next step boundary; the run still saves its state and reports.
  void Halt();
  // Abandons the run, whose lease is lost: training ends, calls to the server are cancelled,
  // nothing more is reported.
  void Abandon();
  // Requests the run's state after the current piece of training.
  void Save() { save_ = true; }
  // Returns true if Save was called since the last call of this.
  bool TakeSave() { return save_.exchange(false); }
  // True after Halt or Abandon.
  const std::atomic<bool>& stop() const { return stop_; }
  // True after Abandon.
  const std::atomic<bool>& gone() const { return abandoned_; }
  bool halted() const { return stop_; }
  bool abandoned() const { return abandoned_; }

  // Abandoning this run also abandons `follower`, at once if this run already is abandoned. Null
  // removes the follower.
  void SetFollower(RunControl* follower);

  // Waits for `duration`, or until the next Halt or Abandon.
  void Pause(absl::Duration duration);

  // `cancel` is called at once if the run is abandoned already, or when it is abandoned before
  // EndCall; it must not block.
  void BeginCall(std::function<void()> cancel);
  void EndCall();

  // Marks time in which the run waits for the server. It counts neither as lane time nor as time
  // without progress.
  void BeginWaiting();
  void EndWaiting();
  absl::Duration waited() const;

  // Records progress for heartbeats: updates or a part of an evaluation, now at `step`.
  void Progressed(uint32_t step);
  struct Progress {
    uint32_t step = 0;
    absl::Duration since_progress;
  };
  Progress progress() const;

 private:
  std::atomic<bool> save_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> abandoned_{false};  // changes under the lock, together with its effects
  mutable Mutex mutex_;
  CondVar changed_;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
  RunControl* follower_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint32_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration progress_at_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration waiting_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration waited_ ABSL_GUARDED_BY(mutex_);  // without the current wait
};

// Marks its lifetime as waiting for the server.
class ServerWait {
 public:
  explicit ServerWait(RunControl& control) : control_(control) { control_.BeginWaiting(); }
  ~ServerWait() { control_.EndWaiting(); }
  ServerWait(const ServerWait&) = delete;
  ServerWait& operator=(const ServerWait&) = delete;

 private:
  RunControl& control_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_RUN_CONTROL_H_
