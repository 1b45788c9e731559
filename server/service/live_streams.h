// The streams that are open: how many there may be, and how to reach them when something happens.
#ifndef ABLATE_SERVER_SERVICE_LIVE_STREAMS_H_
#define ABLATE_SERVER_SERVICE_LIVE_STREAMS_H_

#include <atomic>
#include <chrono>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sync/mutex.h"

namespace ablate::service {

// Called on any thread; must not block and must not call back into LiveStreams.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  // The server ends: finish with UNAVAILABLE soon.
  virtual void Stop() = 0;
  // Something was committed.
  virtual void Wake() {}
  // From time to time, with the monotonic time: end if the client is too slow.
  virtual void Look(absl::Duration) {}
};

// Thread-safe. Outlives its streams.
class LiveStreams {
 public:
  // `what` names the streams in errors, such as "watches".
  LiveStreams(std::string what, size_t most);

  // RESOURCE_EXHAUSTED if there are `most` already, UNAVAILABLE after StopAll.
  absl::Status Add(LiveStream* stream);
  // Also of one that was not accepted. After it returns the stream is not called again.
  void Remove(LiveStream* stream);
  void WakeAll();
  void LookAtAll(absl::Duration now);
  void StopAll();
  // Waits until none is left, at most until `deadline`. After StopAll.
  void WaitUntilGone(std::chrono::steady_clock::time_point deadline);

 private:
  const std::string what_;
  const size_t most_;
  Mutex mutex_;
  CondVar gone_;  // none is left
  std::set<LiveStream*> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// A unary call that holds a thread of the pool for long: one of `streams` while it exists.
class LiveCall final : public LiveStream {
 public:
  explicit LiveCall(LiveStreams* streams) : streams_(streams), accepted_(streams->Add(this)) {}
  ~LiveCall() override { streams_->Remove(this); }
  LiveCall(const LiveCall&) = delete;
  LiveCall& operator=(const LiveCall&) = delete;

  // As LiveStreams::Add: the call is to end with this error.
  const absl::Status& accepted() const { return accepted_; }
  void Stop() override { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  LiveStreams* const streams_;
  std::atomic<bool> stopped_ = false;
  const absl::Status accepted_;
};

// The error of a call that the server's end cut short.
absl::Status ServerEnds();

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_LIVE_STREAMS_H_
