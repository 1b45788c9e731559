// Passes requests to a run while a lane trains it: to save its state, to end at the next step
// boundary, or to be forgotten.
#ifndef ABLATE_SERVER_WORKER_RUN_CONTROL_H_
#define ABLATE_SERVER_WORKER_RUN_CONTROL_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace ablate::worker {

// Thread-safe: one lane trains, the attach loop and the main thread ask.
class RunControl {
 public:
  RunControl();

  // Ends training at the next step boundary; the run still saves its state and reports.
  void Halt();
  // The run is not ours any more: training ends, calls to the server are cancelled, nothing more is
  // reported.
  void Abandon();
  // Asks for the run's state after the piece of training at hand.
  void Save() { save_ = true; }
  // Returns true if Save was called since the last call of this.
  bool TakeSave() { return save_.exchange(false); }
  // True after Halt or Abandon.
  const std::atomic<bool>& stop() const { return stop_; }
  // True after Abandon.
  const std::atomic<bool>& gone() const { return abandoned_; }
  bool halted() const { return stop_; }
  bool abandoned() const { return abandoned_; }

  // Abandoning the run abandons this one too, at once if it already is; null ends that.
  void SetFollower(RunControl* follower);

  // Waits, but for no longer than until the next Halt or Abandon.
  void Pause(absl::Duration duration);

  // `cancel` is called at once if the run is abandoned already, or when it is abandoned before
  // EndCall; it must not block.
  void BeginCall(std::function<void()> cancel);
  void EndCall();

  // Time in which the run waits for the server is neither lane time nor time without progress.
  void BeginWaiting();
  void EndWaiting();
  absl::Duration waited() const;

  // Something was done, updates or a part of an evaluation; at this step now. For heartbeats.
  void Progressed(uint32_t step);
  struct Progress {
    uint32_t step = 0;
    absl::Duration since_progress;
  };
  Progress progress() const;

 private:
  std::atomic<bool> save_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> abandoned_{false};  // changes under the lock, with what follows from it
  mutable Mutex mutex_;
  CondVar changed_;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
  RunControl* follower_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint32_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration progress_at_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration waiting_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration waited_ ABSL_GUARDED_BY(mutex_);  // before the present wait
};

// Marks a stretch in which the run waits for the server.
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
