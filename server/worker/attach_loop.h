// Keeps this worker attached to its server: streams, heartbeats, reconnection, and the lease book,
// which connects them to the lanes.
#ifndef ABLATE_SERVER_WORKER_ATTACH_LOOP_H_
#define ABLATE_SERVER_WORKER_ATTACH_LOOP_H_

#include <functional>
#include <memory>
#include <optional>
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
  v1::Hello hello;  // without held leases
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration longest_wait = absl::Seconds(1);
  absl::Duration welcome_timeout = absl::Seconds(10);  // from Hello to Welcome
  // Without a server for this long and without a lease, the worker exits, because its server won't
  // return.
  absl::Duration orphan_timeout = absl::Minutes(10);
  // When another scheduler ends this process; infinite: none does. The Hello has the time left.
  absl::Duration ends_at = absl::InfiniteDuration();
  // Returns a more specific reason for which the server can't be reached, or OK; may take seconds.
  // May be null.
  std::function<absl::Status()> diagnose = {};
};

// The server's requests to the worker. Called from the transport's threads, one at a time; must not
// block. Requests that a role never receives may be null.
struct AttachRequests {
  std::function<void(v1::Grant)> start;
  std::function<void(const std::string& lease)> abandon;
  std::function<void(const std::string& lease)> save;
  std::function<void()> drain;
  // The server rejects this worker, possibly after having accepted it: UNAUTHENTICATED,
  // PERMISSION_DENIED, or ALREADY_EXISTS if another process now uses its name.
  std::function<void(const absl::Status& why)> refused;
  // For heartbeats, on a thread of the loop; may be null.
  std::function<std::vector<v1::LeaseProgress>()> progress;
  std::function<std::optional<v1::DeviceUse>()> device_use;
  // Returns the runs to train at the same time. If it isn't null, a heartbeat follows the Welcome.
  std::function<uint32_t()> lanes;
  std::function<void(v1::Analyze)> analyze;
  std::function<void(const std::string& id)> cancel_analysis;
  std::function<void(const std::string& id)> yield_analysis;
  // The stream has ended. The server has forgotten which analyses it requested.
  std::function<void()> disconnected;
};

// Runs the attachment. Thread-safe.
class AttachLoop : public EventSink {
 public:
  AttachLoop(AttachOptions options, std::unique_ptr<AttachClient> client);
  // Detaches. `requests` isn't called after Stop has returned.
  ~AttachLoop() override;

  // Attaches in a separate thread, and again whenever the stream breaks. Call it once.
  void Run(AttachRequests requests);
  void Stop();

  // Sends a message that isn't about a lease. It is lost if there is no stream.
  void Send(v1::FromWorker message);
  // Waits until everything sent is on its way, or lost with its stream. Returns false on timeout.
  bool Flush(absl::Duration timeout);

  void Report(v1::Event event) override;
  bool HasCredit(const std::string& lease) const override;

  // Returns the time since the last message during a lease, or since the start; zero during one.
  absl::Duration IdleTime() const;
  // Returns true if a server has ever welcomed this worker.
  bool WasAttached() const;

  // Waits until every run has ended and every event is acknowledged. Returns false on timeout.
  bool WaitUntilSettled(absl::Duration timeout);

 private:
  void Loop();
  // Attaches and keeps the stream until it breaks. Returns true if the server sent Welcome.
  bool RunStream();
  void Received(const v1::ToWorker& message);
  void Ended(const absl::Status& status);
  // Waits until the stream breaks; sends heartbeats.
  void KeepStream(AttachStream* stream);
  void SendHeartbeat();
  // Drops all leases after longer than the server's grace without a stream.
  void CheckAbsence();
  // Logs each reason once, however many attempts fail with it, because a certificate that isn't
  // trusted stays so.
  void SayWhyNotAttached();
  void DropLeases();
  void WaitBeforeRetry(absl::Duration wait);
  // Waits for a signal, after which the caller checks its condition. Returns false after the
  // deadline.
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
  bool was_attached_ ABSL_GUARDED_BY(mutex_) = false;       // on any
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;              // this stream
  absl::Status refused_ ABSL_GUARDED_BY(mutex_);            // why the server rejects this worker
  absl::Status why_not_attached_ ABSL_GUARDED_BY(mutex_);   // reason of the last stream
  absl::Status said_ ABSL_GUARDED_BY(mutex_);               // the last reason logged
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration heartbeat_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(5);
  absl::Duration grace_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(60);
  absl::Duration detached_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration busy_at_ ABSL_GUARDED_BY(mutex_);  // a message came during a lease
  std::thread thread_;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_ATTACH_LOOP_H_
