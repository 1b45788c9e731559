#include "server/worker/run_control.h"

#include <utility>

namespace ablate::worker {

RunControl::RunControl() : progress_at_(MonotonicNow()) {}

void RunControl::Halt() {
  MutexLock lock(&mutex_);
  stop_ = true;
  changed_.SignalAll();
}

void RunControl::Abandon() {
  MutexLock lock(&mutex_);
  stop_ = true;
  abandoned_ = true;
  if (cancel_) cancel_();
  if (follower_ != nullptr) follower_->Abandon();
  changed_.SignalAll();
}

void RunControl::SetFollower(RunControl* follower) {
  MutexLock lock(&mutex_);
  follower_ = follower;
  if (abandoned_ && follower != nullptr) follower->Abandon();
}

void RunControl::Pause(absl::Duration duration) {
  MutexLock lock(&mutex_);
  if (abandoned_) return;
  changed_.WaitFor(&mutex_, absl::ToChronoMilliseconds(duration));
}

void RunControl::BeginCall(std::function<void()> cancel) {
  MutexLock lock(&mutex_);
  if (abandoned_) cancel();
  cancel_ = std::move(cancel);
}

void RunControl::EndCall() {
  MutexLock lock(&mutex_);
  cancel_ = nullptr;
}

void RunControl::Progressed(uint32_t step) {
  MutexLock lock(&mutex_);
  step_ = step;
  progress_at_ = MonotonicNow();
}

void RunControl::BeginWaiting() {
  MutexLock lock(&mutex_);
  waiting_ = true;
  waiting_since_ = MonotonicNow();
}

void RunControl::EndWaiting() {
  MutexLock lock(&mutex_);
  const absl::Duration now = MonotonicNow();
  waiting_ = false;
  waited_ += now - waiting_since_;
  progress_at_ = now;
}

absl::Duration RunControl::waited() const {
  MutexLock lock(&mutex_);
  return waited_ + (waiting_ ? MonotonicNow() - waiting_since_ : absl::ZeroDuration());
}

RunControl::Progress RunControl::progress() const {
  MutexLock lock(&mutex_);
  return {step_, waiting_ ? absl::ZeroDuration() : MonotonicNow() - progress_at_};
}

}  // namespace ablate::worker
