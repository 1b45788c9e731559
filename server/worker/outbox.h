// The events of a run on their way: in order, and each after the blob that it names.
#ifndef ABLATE_SERVER_WORKER_OUTBOX_H_
#define ABLATE_SERVER_WORKER_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/worker/blob_channel.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

// Where a lane's events go. Thread-safe; must not block.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Lease and kind are set.
  virtual void Report(v1::Event event) = 0;
  // Whether the lease's run may go on making events.
  virtual bool HasCredit(const std::string& lease) const = 0;
};

// One lane posts; a thread of the outbox publishes blobs, so that the lane trains meanwhile. What
// is posted behind a blob is held back until the blob is published: a resume state's place in the
// order of events is where it was taken.
class Outbox {
 public:
  // Abandoning the run ends what is under way. A blob holds events back for `hold` before the lane
  // should wait. All must outlive the outbox.
  Outbox(std::string lease, absl::Duration hold, BlobChannel* blobs, EventSink* events,
         RunControl* control);
  // Forgets what was not sent.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Sends an event, at once if no blob is before it.
  void Post(v1::Event event);
  // Publishes a blob beside the lane and sends its event then: a checkpoint or resume state of
  // which blob and bytes are yet to be set. Waits for blobs under way unless all are small, for one
  // large one is as much memory as a run may take. An error is status(), and the event is left out.
  absl::Status PostBlob(v1::Event event, std::string blob);

  // Why a blob could not be published; its event was left out.
  absl::Status status() const;
  // Whether a blob is under way.
  bool publishing() const;
  // Whether so much is held back, or for so long, that the lane should wait: what a blob that finds
  // no room holds back would be lost with the worker.
  bool full() const;
  // Waits until everything was sent; status() then.
  absl::Status Settle();
  // Waits while a large blob is under way; status() then.
  absl::Status AwaitRoom();

 private:
  struct Item {
    v1::Event event;
    std::optional<std::string> blob;
  };

  // False if this machine has no thread to give.
  bool StartThread();
  void Work();
  // Waits until so many bytes of blobs may come behind those under way; status() then.
  absl::Status AwaitRoomFor(uint64_t bytes);
  absl::Status PublishNow(v1::Event event, const std::string& blob);
  absl::Status Publish(v1::Event* event, const std::string& blob, RunControl& control);

  const std::string lease_;
  const absl::Duration hold_;
  BlobChannel* const blobs_;
  EventSink* const events_;
  RunControl* const control_;
  // Of the thread: what it waits for is not the lane's waiting.
  RunControl publishing_control_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);   // the first has the blob under way
  uint64_t blob_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all blobs among them
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration held_since_ ABSL_GUARDED_BY(mutex_);  // the blob under way is
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // from the first blob on
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_OUTBOX_H_
