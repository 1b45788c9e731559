// A server stream that reports changes: it runs rounds on the work pool, each of which reads the
// changes and has them written, at a pace that leaves the pool to others.
#ifndef ABLATE_SERVER_SERVICE_WATCH_STREAM_H_
#define ABLATE_SERVER_SERVICE_WATCH_STREAM_H_

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "server/lookup/errors.h"
#include "server/rpc/call.h"
#include "server/rpc/live_streams.h"

namespace ablate::service {

// Says when the next round begins, once this one's messages are written.
struct NextRound {
  bool final = false;                // no further round: the stream ends
  bool at_once = false;              // there is more to send
  std::optional<absl::Duration> at;  // by the monotonic clock, if nothing happens before
};

// Either rests, or has exactly one task on the pool or write in progress: the code that sets
// `busy_` owns everything that isn't guarded, until the stream rests again. So derived classes need
// no lock. Kept alive by its call, and by tasks and timers that outlast it.
template <class Message>
class WatchStream : public grpc::ServerWriteReactor<Message>,
                    public rpc::LiveStream,
                    public std::enable_shared_from_this<WatchStream<Message>> {
 public:
  explicit WatchStream(const rpc::StreamCall& call) : call_(call), pace_(call.pace) {}

  // Starts a new call's stream; the method handler returns the result.
  static grpc::ServerWriteReactor<Message>* Begin(std::shared_ptr<WatchStream> stream) {
    stream->self_ = stream;
    absl::Status accepted = stream->Check();
    if (accepted.ok()) accepted = stream->call_.streams->Add(stream.get(), stream->call_.context);
    if (accepted.ok()) {
      accepted = stream->call_.pool->TryPost([stream] { stream->RunRound(); }, stream->call_.user);
    }
    if (!accepted.ok()) stream->End(accepted);
    return stream.get();
  }

  void Stop() final { Leave(rpc::ServerEnds()); }
  void OnCancel() final { Leave(lookup::CallCancelled()); }
  void CheckPace(absl::Duration now) final {
    if (pace_.TooSlow(now)) rpc::EndNow(call_.context, rpc::TooSlow(pace_));
  }
  void Wake() final {
    MutexLock lock(&mutex_);
    woken_ = true;
    if (!busy_) Schedule(earliest_);
  }
  void OnWriteDone(bool ok) final {
    pace_.Written(Now());
    if (!ok) return End(absl::CancelledError("the watcher is gone"));
    batch_.pop_front();
    WriteNext();
  }
  void OnDone() final {
    call_.streams->Remove(this);
    self_.reset();
  }

 protected:
  static absl::Duration Now() { return MonotonicNow(); }

  // Checks the request before it may wait for a thread. Must use neither the store nor much time.
  virtual absl::Status Check() const { return absl::OkStatus(); }
  // Appends the messages to send, if any. Runs on the pool.
  virtual absl::StatusOr<NextRound> Round(std::deque<Message>* batch) = 0;

 private:
  // Pause between rounds: short enough for a first point to seem immediate. A watcher of something
  // huge takes at most a tenth of a core, and all watchers together half a core.
  static constexpr absl::Duration kMinPause = absl::Milliseconds(10);
  absl::Duration PauseAfter(absl::Duration work) const {
    const auto watchers = static_cast<int64_t>(call_.streams->size());
    return std::max(kMinPause, std::max<int64_t>(9, 2 * watchers) * work);
  }

  void RunRound() {
    {
      MutexLock lock(&mutex_);
      woken_ = false;
    }
    const absl::Duration begin = Now();
    absl::StatusOr<NextRound> next = Round(&batch_);
    const absl::Duration end = Now();
    const absl::Duration pause = PauseAfter(end - begin);
    {
      MutexLock lock(&mutex_);
      earliest_ = end + pause;
    }
    if (!next.ok()) return End(next.status());
    next_ = *next;
    WriteNext();
  }

  void WriteNext() {
    if (!batch_.empty()) {
      pace_.Write(batch_.front().ByteSizeLong(), Now());
      this->StartWrite(&batch_.front());
    } else if (next_.final) {
      End(absl::OkStatus());
    } else {
      Rest();
    }
  }

  void Rest() {
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      end = end_;
      if (end.ok()) {
        busy_ = false;
        if (next_.at_once) {
          Schedule(absl::ZeroDuration());
        } else if (woken_) {
          Schedule(earliest_);
        } else if (next_.at.has_value()) {
          Schedule(std::max(*next_.at, earliest_));
        }
      }
    }
    if (!end.ok()) End(end);
  }

  // Starts a round at `at`, or now if that has passed.
  void Schedule(absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration now = Now();
    if (at <= now) {
      busy_ = true;
      call_.pool->Post([self = this->shared_from_this()] { self->RunRound(); }, call_.user);
    } else if (!timer_.has_value() || at < *timer_) {
      timer_ = at;
      call_.pool->PostAfter(
          at - now, [self = this->shared_from_this(), at] { self->OnTimer(at); }, call_.user);
    }
  }

  void OnTimer(absl::Duration at) {
    {
      MutexLock lock(&mutex_);
      if (timer_ != at) return;
      timer_.reset();
      if (busy_) return;
      // A round in between may have postponed the next one.
      if (Now() < earliest_) return Schedule(earliest_);
      busy_ = true;
    }
    RunRound();
  }

  // Ends after the work in progress.
  void Leave(const absl::Status& why) {
    {
      MutexLock lock(&mutex_);
      end_.Update(why);
      if (busy_) return;
      busy_ = true;
    }
    End(why);
  }

  void End(const absl::Status& status) { this->Finish(lookup::ToGrpc(status)); }

  const rpc::StreamCall call_;
  rpc::Pace pace_;
  std::shared_ptr<WatchStream> self_;  // until OnDone

  // Owned by the code that set busy_.
  std::deque<Message> batch_;
  NextRound next_;

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // reason to stop; OK if nobody asked
  absl::Duration earliest_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();  // next round
  std::optional<absl::Duration> timer_ ABSL_GUARDED_BY(mutex_);             // soonest
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WATCH_STREAM_H_
