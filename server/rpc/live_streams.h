// The streams that are open: how many there may be, how slow their clients may be, and how to reach
// them when something happens.
#ifndef ABLATE_SERVER_RPC_LIVE_STREAMS_H_
#define ABLATE_SERVER_RPC_LIVE_STREAMS_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "grpcpp/server_context.h"
#include "server/rpc/limits.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// Called on any thread; must not block and must not call back into LiveStreams.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  // The server ends: finish with UNAVAILABLE soon.
  virtual void Stop() = 0;
  // Something was committed.
  virtual void Wake() {}
  // From time to time, with the monotonic time: end if the client is too slow.
  virtual void CheckPace(absl::Duration) {}
};

// Thread-safe. Outlives its streams.
class LiveStreams {
 public:
  // `what` names the streams in errors, such as "watches". One of a user's ends after `max_time`.
  LiveStreams(std::string what, Most max, absl::Duration max_time = absl::InfiniteDuration());

  // Finds who calls, by the call's own metadata, or why the call is to end. Must not block. Asked
  // again once the stream is one that EndTokens sees, so that a token that ends meanwhile is
  // noticed.
  using FindCaller =
      std::function<absl::StatusOr<storage::Caller>(const grpc::ServerContextBase& context)>;
  // Before the first Add. Without it streams are nobody's.
  void set_find_caller(FindCaller find_caller) { find_caller_ = std::move(find_caller); }

  // RESOURCE_EXHAUSTED if there are too many already, in all or of the caller; UNAVAILABLE after
  // StopAll; or what FindCaller says. `context` is its call's; null for one that is nobody's.
  absl::Status Add(LiveStream* stream, grpc::CallbackServerContext* context = nullptr);
  // Also of one that was not accepted. After it returns the stream is not called again.
  void Remove(LiveStream* stream);
  void WakeAll();
  // Ends those whose clients are too slow, and those of users that take too long.
  void CheckPaces(absl::Duration now);
  void StopAll();
  // Ends the calls that came with one of these tokens at once.
  void EndTokens(const std::set<std::string>& tokens, const absl::Status& why);
  // Waits until none is left, at most until `deadline`. After StopAll.
  void WaitUntilGone(std::chrono::steady_clock::time_point deadline);

 private:
  // Of a stream, where it is known.
  struct Call {
    grpc::CallbackServerContext* context = nullptr;
    storage::Caller caller = {};
    std::optional<absl::Duration> since = {};  // when CheckPaces first saw it
  };

  absl::Status AddAs(const storage::Caller& caller, LiveStream* stream,
                     grpc::CallbackServerContext* context);

  const std::string what_;
  const Most max_;
  const absl::Duration max_time_;
  FindCaller find_caller_;
  Mutex mutex_;
  CondVar gone_;  // none is left
  std::map<LiveStream*, Call> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// A unary call that holds a thread of the pool for long: one of `streams` while it exists.
class LiveCall final : public LiveStream {
 public:
  explicit LiveCall(LiveStreams* streams, grpc::CallbackServerContext* context = nullptr)
      : streams_(streams), context_(context), accepted_(streams->Add(this, context)) {}
  ~LiveCall() override { streams_->Remove(this); }
  LiveCall(const LiveCall&) = delete;
  LiveCall& operator=(const LiveCall&) = delete;

  // As LiveStreams::Add: the call is to end with this error.
  const absl::Status& accepted() const { return accepted_; }
  void Stop() override { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Whether the server stops, or nobody wants the answer: asked now and then by what takes long.
  bool ended() const { return stopped_ || (context_ != nullptr && context_->IsCancelled()); }

 private:
  LiveStreams* const streams_;
  const grpc::CallbackServerContext* const context_;
  std::atomic<bool> stopped_ = false;
  const absl::Status accepted_;
};

// The error of a call that the server's end cut short.
absl::Status ServerEnds();

// What the other end of a stream must keep up with: a place is others' when it is held for nothing.
struct MinPace {
  absl::Duration timeout = kStreamTimeout;
  double bytes_per_second = kMinBytesPerSecond;
};

// Counts the time that one stream waits for its other end, less what the bytes that went are worth
// at the least rate. Time without anything to read or write counts nothing: a watcher of an idle
// experiment is not slow. A message on its way has the time that it takes at that rate, or a large
// one could not be passed in any. Thread-safe; `now` is monotonic time.
class Pace {
 public:
  // How large a message is that is being read is known when it is here: `largest_read` bounds it.
  explicit Pace(const MinPace& min, size_t largest_read = 0);

  // A write of so many bytes begins.
  void Write(size_t bytes, absl::Duration now);
  void Written(absl::Duration now);
  // A read begins, and has ended with so many bytes.
  void Read(absl::Duration now);
  void HasRead(size_t bytes, absl::Duration now);
  // Whether the other end is behind by more than the timeout.
  bool TooSlow(absl::Duration now) const;
  // What is asked for, such as "at least 6.4 KiB a second, and may be 1m behind that".
  std::string Terms() const;

 private:
  absl::Duration TimeOf(size_t bytes) const;
  void Begin(absl::Duration earned, absl::Duration now);
  void End(absl::Duration earned, absl::Duration now);

  const MinPace min_;
  const absl::Duration timeout_;  // with the largest read's time
  mutable Mutex mutex_;
  absl::Duration behind_ ABSL_GUARDED_BY(mutex_);                // below zero only during a write
  std::optional<absl::Duration> since_ ABSL_GUARDED_BY(mutex_);  // of the wait in progress
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_LIVE_STREAMS_H_
