// A worker's long stream: hands its messages to the scheduler and the scheduler's to it.
#ifndef ABLATE_SERVER_SERVICE_ATTACH_STREAM_H_
#define ABLATE_SERVER_SERVICE_ATTACH_STREAM_H_

#include <deque>
#include <memory>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/blob_pins.h"
#include "server/service/limits.h"
#include "server/service/live_streams.h"
#include "server/service/pace.h"
#include "server/service/work_pool.h"
#include "storage/store.h"
#include "sync/mutex.h"

namespace ablate::service {

// What attached streams work with; outlives their calls. The scheduler may hold a stream longer:
// one whose call has ended touches none of this.
struct WorkerBackend {
  storage::Store* store = nullptr;
  schedule::SchedulerThread* scheduler = nullptr;
  WorkPool* pool = nullptr;
  LeastPace pace;
  BlobPins pins;
  LiveStreams streams{"workers", kMostWorkerStreams};
  LiveStreams transfers{"transfers of workers", kMostWorkerTransfers};
};

// Kept alive by the call and by the scheduler. The next message is read when the scheduler has
// taken the one before, so that a worker can't flood it.
class AttachReactor final
    : public grpc::ServerBidiReactor<worker::v1::FromWorker, worker::v1::ToWorker>,
      public schedule::WorkerStream,
      public LiveStream,
      public std::enable_shared_from_this<AttachReactor> {
 public:
  // The reactor of a new call; `context` outlives the call.
  static AttachReactor* Start(WorkerBackend* backend, grpc::CallbackServerContext* context);

  void Send(const worker::v1::ToWorker& message) override;
  void Close(const absl::Status& why) override;
  void Stop() override;
  void Look(absl::Duration now) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AttachReactor(WorkerBackend* backend, grpc::CallbackServerContext* context);

  void Open();
  void ReadNext();
  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the scheduler, once, that nothing more will come.
  void Leave();
  // Finishes with `status` after the write in progress, which has a while to end.
  void End(const absl::Status& status);
  void EndLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abort();

  WorkerBackend* const backend_;
  grpc::CallbackServerContext* const context_;
  std::shared_ptr<AttachReactor> self_;       // until OnDone
  schedule::Scheduler::Session session_ = 0;  // touched on the scheduler's thread only
  worker::v1::FromWorker incoming_;           // between a read and ReadNext the scheduler's
  Pace pace_;

  Mutex mutex_;
  std::deque<worker::v1::ToWorker> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  size_t outgoing_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more is read or written
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = true;  // the scheduler does not know the stream
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ATTACH_STREAM_H_
