// Keeps the open streams: limits their number and slowness, and wakes or ends them.
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
#include "server/lookup/limits.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// Interface of an open stream. Methods are called on any thread; they must not block and must not
// call LiveStreams.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  // The server shuts down: finish soon with UNAVAILABLE.
  virtual void Stop() = 0;
  // Something was committed.
  virtual void Wake() {}
  // Called from time to time with the monotonic time: end the stream if the client is too slow.
  virtual void CheckPace(absl::Duration) {}
};

// Holds all open streams of one kind. Thread-safe. Outlives its streams.
class LiveStreams {
 public:
  // `what` names the streams in errors, as "watches". A user's stream ends after `max_time`.
  LiveStreams(std::string what, lookup::Limit max,
              absl::Duration max_time = absl::InfiniteDuration());

  // Finds the caller by the call's own metadata, or the error with which the call must end. Must
  // not block. Called a second time once EndTokens sees the stream, so that a token that ends
  // meanwhile is noticed.
  using FindCaller =
      std::function<absl::StatusOr<storage::Caller>(const grpc::ServerContextBase& context)>;
  // Call it before the first Add. Without it streams have no user.
  void set_find_caller(FindCaller find_caller) { find_caller_ = std::move(find_caller); }

  // Adds a stream. RESOURCE_EXHAUSTED if there are too many, in all or of the caller; UNAVAILABLE
  // after StopAll; or FindCaller's error. `context` is the stream's call; null if it has no user.
  absl::Status Add(LiveStream* stream, grpc::CallbackServerContext* context = nullptr);
  // Removes a stream, also one that was not accepted. Afterwards the stream is not called again.
  void Remove(LiveStream* stream);
  // Returns the number of streams.
  size_t size() const;
  void WakeAll();
  // Ends streams with slow clients and streams of users that last too long.
  void CheckPaces(absl::Duration now);
  void StopAll();
  // Ends at once the calls that came with one of these tokens.
  void EndTokens(const std::set<std::string>& tokens, const absl::Status& why);
  // Waits until no stream is left, at most until `deadline`. Call it after StopAll.
  void WaitUntilGone(std::chrono::steady_clock::time_point deadline);

 private:
  // A stream's call, if it is known.
  struct Call {
    grpc::CallbackServerContext* context = nullptr;
    storage::Caller caller = {};
    std::optional<absl::Duration> since = {};  // when CheckPaces first saw it
  };

  absl::Status AddAs(const storage::Caller& caller, LiveStream* stream,
                     grpc::CallbackServerContext* context);

  const std::string what_;
  const lookup::Limit max_;
  const absl::Duration max_time_;
  FindCaller find_caller_;
  mutable Mutex mutex_;
  CondVar gone_;  // signalled when no stream is left
  std::map<LiveStream*, Call> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// A unary call that occupies a thread of the pool for long: one of `streams` while it exists.
class LiveCall final : public LiveStream {
 public:
  explicit LiveCall(LiveStreams* streams, grpc::CallbackServerContext* context = nullptr)
      : streams_(streams), context_(context), accepted_(streams->Add(this, context)) {}
  ~LiveCall() override { streams_->Remove(this); }
  LiveCall(const LiveCall&) = delete;
  LiveCall& operator=(const LiveCall&) = delete;

  // Returns LiveStreams::Add's status; if it isn't OK, the call must end with it.
  const absl::Status& accepted() const { return accepted_; }
  void Stop() override { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Returns true if the server stops or nobody wants the answer; long work asks now and then.
  bool ended() const { return stopped_ || (context_ != nullptr && context_->IsCancelled()); }

 private:
  LiveStreams* const streams_;
  const grpc::CallbackServerContext* const context_;
  std::atomic<bool> stopped_ = false;
  const absl::Status accepted_;
};

// Returns the error of a call that the server's shutdown ended.
absl::Status ServerEnds();

// Least rate that the other end of a stream must keep up, so that idle streams don't hold places.
struct MinPace {
  absl::Duration timeout = lookup::kStreamTimeout;
  double bytes_per_second = lookup::kMinBytesPerSecond;
};

// Measures how far a stream's other end is behind: the time that the stream waits for it, less the
// time that the transferred bytes take at the least rate. Time without anything to read or write
// doesn't count, so that a watcher of an idle experiment isn't slow. Other ends that take nothing
// are too slow after the timeout, unless the message that is being written takes longer than that
// at the least rate: then after its time. Thread-safe; `now` is monotonic time.
class Pace {
 public:
  // The size of a message is known only once it has been read; `largest_read` bounds it.
  explicit Pace(const MinPace& min, size_t largest_read = 0);

  // Call it when a write of so many bytes begins.
  void Write(size_t bytes, absl::Duration now);
  void Written(absl::Duration now);
  // Call these when a read begins, and when it has ended with so many bytes.
  void Read(absl::Duration now);
  void HasRead(size_t bytes, absl::Duration now);
  // Returns true if the other end is behind by more than the timeout.
  bool TooSlow(absl::Duration now) const;
  // Returns the requirement in words: "at least 6.4 KiB a second, and may be 1m behind that".
  std::string Terms() const;

 private:
  absl::Duration TimeOf(size_t bytes) const;
  void End(absl::Duration earned, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MinPace min_;
  const absl::Duration timeout_;  // includes the time of the largest read
  mutable Mutex mutex_;
  absl::Duration behind_ ABSL_GUARDED_BY(mutex_);  // negative only during a write
  absl::Duration writes_ ABSL_GUARDED_BY(mutex_);  // what the write in progress will have earned
  std::optional<absl::Duration> since_ ABSL_GUARDED_BY(mutex_);  // start of the wait in progress
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_LIVE_STREAMS_H_
