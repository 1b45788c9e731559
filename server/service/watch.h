// WatchExperiment: a stream that sleeps until something was committed.
#ifndef ABLATE_SERVER_SERVICE_WATCH_H_
#define ABLATE_SERVER_SERVICE_WATCH_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/backend.h"
#include "server/service/live_streams.h"
#include "server/service/watch_feed.h"
#include "sync/mutex.h"

namespace ablate::service {

// One watcher. Either it rests, or exactly one of a task on the pool and a write is in progress:
// whoever makes `busy_` true owns everything that is not guarded, until it rests again. Kept alive
// by the call, and by tasks and timers that outlast it.
class WatchReactor final : public grpc::ServerWriteReactor<v1::ExperimentEvent>,
                           public LiveStream,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  // The reactor of a new call; what is pointed to outlives the call.
  static WatchReactor* Start(Backend* backend, grpc::CallbackServerContext* context,
                             const v1::WatchExperimentRequest* request);

  void Stop() override;
  void Wake() override;
  void Look(absl::Duration now) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchReactor(Backend* backend, grpc::CallbackServerContext* context,
               const v1::WatchExperimentRequest* request);

  void Open();
  void Round();
  absl::Status Collect();
  absl::Status MakeEvents(const std::vector<storage::CellRecord>& cells,
                          const storage::RunCounts& counts);
  // Tells of a stall or of its end, if no cell's event does.
  void TellStall(const storage::RunCounts& counts);
  void WriteNext();
  void Rest();
  void OnTimer(absl::Duration at);
  void End(const absl::Status& status);
  // Has a round begin at `at`, or now if that has passed.
  void Schedule(absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchExperimentRequest* const request_;
  Pace pace_;
  std::shared_ptr<WatchReactor> self_;  // until OnDone

  // Owned by whoever made busy_ true.
  std::string experiment_;
  std::vector<std::string> keys_;
  WatchFeed feed_{0};
  uint64_t token_ = 0;      // of what was told before this round
  bool has_ended_ = false;  // before this round's reads
  bool more_ = false;       // cells are left that changed before this round
  bool final_ = false;
  std::string stalled_;  // as told last
  std::deque<v1::ExperimentEvent> batch_;

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why to stop; OK while nobody asked
  absl::Duration earliest_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();  // next round
  std::optional<absl::Duration> timer_ ABSL_GUARDED_BY(mutex_);             // soonest
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WATCH_H_
