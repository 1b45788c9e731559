// Sends a run's events in order, each after the blob that it names has been published.
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

// Receives a lane's events. Thread-safe; must not block.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Takes an event with lease and kind set.
  virtual void Report(v1::Event event) = 0;
  // Returns true if the lease's run may produce more events.
  virtual bool HasCredit(const std::string& lease) const = 0;
};

// Queues events of one lane, and publishes blobs in a thread of its own while the lane trains.
// Events posted after a blob are held back until it is published, so that a resume state keeps its
// place in the order of events.
class Outbox {
 public:
  // Abandoning the run ends pending work. A blob may hold events back for `hold` before the lane
  // should wait. The arguments must outlive the outbox.
  Outbox(std::string lease, absl::Duration hold, BlobChannel* blobs, EventSink* events,
         RunControl* control);
  // Discards unsent events.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Sends an event, at once if no blob precedes it.
  void Post(v1::Event event);
  // Publishes a blob in the background and then sends its event, a checkpoint or resume state whose
  // blob and bytes are set here. Waits for pending blobs unless all are small, because one large
  // blob is all the memory that a run may use. An error is returned by status(), and the event is
  // dropped.
  absl::Status PostBlob(v1::Event event, std::string blob);

  // Returns why a blob couldn't be published; its event was dropped.
  absl::Status status() const;
  // Returns true if a blob is being published.
  bool publishing() const;
  // Returns true if so much is held back, or for so long, that the lane should wait. Events behind
  // a blob for which the server has no room would be lost with the worker.
  bool full() const;
  // Returns the time that the background has spent on published blobs.
  absl::Duration publishing_time() const;
  // Waits until everything is sent. Returns status().
  absl::Status Settle();
  // Waits until no large blob is pending. Returns status().
  absl::Status AwaitRoom();

 private:
  struct Item {
    v1::Event event;
    std::optional<std::string> blob;
  };

  // Returns false if this machine can't start a thread.
  bool StartThread();
  void Work();
  // Waits until `bytes` more bytes of blobs may be queued. Returns status().
  absl::Status AwaitRoomFor(uint64_t bytes);
  absl::Status PublishNow(v1::Event event, const std::string& blob);
  absl::Status Publish(v1::Event* event, const std::string& blob, RunControl& control);

  const std::string lease_;
  const absl::Duration hold_;
  BlobChannel* const blobs_;
  EventSink* const events_;
  RunControl* const control_;
  // Used by the thread, so that its waits don't count as the lane's.
  RunControl publishing_control_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);   // the first one's blob is being published
  uint64_t blob_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all queued blobs
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration held_since_ ABSL_GUARDED_BY(mutex_);  // since when the current blob holds events
                                                       // back
  absl::Duration publishing_time_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started for the first blob
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_OUTBOX_H_
