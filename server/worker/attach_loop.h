// Keeps this worker attached to its server: streams, heartbeats, reconnection, and the lease book
// between them and the lanes.
#ifndef ABLATE_SERVER_WORKER_ATTACH_LOOP_H_
#define ABLATE_SERVER_WORKER_ATTACH_LOOP_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/worker/attach_stream.h"
#include "server/worker/lease_book.h"
#include "server/worker/outbox.h"

namespace ablate::worker {

struct AttachOptions {
  v1::Hello hello;  // all but the held leases
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration longest_wait = absl::Seconds(1);
  absl::Duration welcome_timeout = absl::Seconds(10);  // from Hello to Welcome
  // Without a server for so long and with no lease, the worker leaves: its server is gone for good.
  absl::Duration orphan_timeout = absl::Minutes(10);
  // Says more of why the server is not reached, or OK; may take seconds. Null where there is no
  // more to say.
  std::function<absl::Status()> diagnose = {};
};

// What the server's messages ask of the worker. Called from the transport's threads, one at a time;
// must not block. What a role is never asked may be null.
struct AttachRequests {
  std::function<void(v1::Grant)> start;
  std::function<void(const std::string& lease)> abandon;
  std::function<void(const std::string& lease)> save;
  std::function<void()> drain;
  // The server does not let this worker in, any more: UNAUTHENTICATED or PERMISSION_DENIED, or
  // ALREADY_EXISTS where another process has its name now.
  std::function<void(const absl::Status& why)> refused;
  std::function<std::vector<v1::LeaseProgress>()> progress;  // for heartbeats; null: none
  std::function<void(v1::Analyze)> analyze;
  std::function<void(const std::string& id)> cancel_analysis;
  std::function<void(const std::string& id)> yield_analysis;
  // The stream has ended: the server has forgotten which analyses it asked.
  std::function<void()> disconnected;
};

// Thread-safe.
class AttachLoop : public EventSink {
 public:
  AttachLoop(AttachOptions options, std::unique_ptr<AttachClient> client);
  // Detaches; after Run, `requests` is not called any more once Stop returned.
  ~AttachLoop() override;

  // Attaches in a thread of its own, and again whenever the stream breaks. Once.
  void Run(AttachRequests requests);
  void Stop();

  // Sends a message that is not about a lease; lost without a stream.
  void Send(v1::FromWorker message);
  // Waits until all that was sent is on its way, or lost with its stream; false if that takes
  // longer.
  bool Flush(absl::Duration timeout);

  void Report(v1::Event event) override;
  bool HasCredit(const std::string& lease) const override;

  // Waits until every run has ended and every event was acknowledged; false if that takes longer.
  bool WaitUntilSettled(absl::Duration timeout);

 private:
  void Loop();
  // Attaches and keeps the stream until it breaks; true if it was welcomed.
  bool RunStream();
  void Received(const v1::ToWorker& message);
  void Ended(const absl::Status& status);
  // Waits until the stream breaks; sends heartbeats.
  void KeepStream(AttachStream* stream);
  void SendHeartbeat();
  // Without a stream longer than the server's grace: gives all leases up.
  void CheckAbsence();
  // Once for each reason, however often it is tried: a certificate that is not trusted stays so.
  void SayWhyNotAttached();
  void DropLeases();
  void WaitBeforeRetry(absl::Duration wait);
  // Waits for a signal, which the caller looks behind; false once it is later than the deadline.
  bool WaitForChange(absl::Duration deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendAll(std::vector<v1::FromWorker> messages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AttachOptions options_;
  const std::unique_ptr<AttachClient> client_;
  AttachRequests requests_;
  mutable Mutex mutex_;
  CondVar changed_;
  LeaseBook book_ ABSL_GUARDED_BY(mutex_);
  AttachStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // open, Hello queued
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;           // on this stream
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;              // this stream
  absl::Status refused_ ABSL_GUARDED_BY(mutex_);            // why the server does not let it in
  absl::Status why_not_attached_ ABSL_GUARDED_BY(mutex_);   // of the last stream
  absl::Status said_ ABSL_GUARDED_BY(mutex_);               // of those reasons, the last that was
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration heartbeat_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(5);
  absl::Duration grace_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(60);
  absl::Duration detached_at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_ATTACH_LOOP_H_
