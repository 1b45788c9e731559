// Hands queued runs to attached workers and decides when a lease is lost. The server's side of the
// lease protocol.
#ifndef ABLATE_SERVER_SCHEDULE_SCHEDULER_H_
#define ABLATE_SERVER_SCHEDULE_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/engine/trainer.h"
#include "server/schedule/analyses.h"
#include "server/schedule/clock.h"
#include "server/schedule/worker_stream.h"
#include "storage/store.h"

namespace ablate::schedule {

// A worker's process on this machine, as its supervisor knows it.
struct LocalProcess {
  std::string worker;
  int64_t pid = 0;
};

struct SchedulerOptions {
  absl::Duration heartbeat = absl::Seconds(5);
  absl::Duration silence = absl::Seconds(30);      // without a message: the lease is lost
  absl::Duration absence = absl::Seconds(10);      // without a stream: the lease is lost
  absl::Duration start_grace = absl::Seconds(60);  // after a start nothing expires before this
  // A local process without a stream for so long hangs.
  absl::Duration attach_patience = absl::Minutes(2);
  absl::Duration step_watchdog =
      absl::Minutes(10);            // no step for so long: the run is taken back as lost
  uint64_t credit_bytes = 4 << 20;  // unacknowledged event bytes a lease may have
  uint32_t runs_per_lane = 2;       // one that trains and what is granted ahead of it
  // Short runs are granted further ahead, until a lane has about this much to do.
  absl::Duration work_per_lane = absl::Seconds(2);
  // Workers that compute other numbers than fingerprints promise, such as one that outlived an
  // upgrade of the server, keep what they hold and get nothing new. Empty, 0: any.
  std::string trainer{engine::TorchTrainerName()};
  uint32_t numerics_version = engine::kNumericsVersion;
  // The same holds of workers that know less than runs may ask for.
  uint32_t config_version = engine::kConfigVersion;
  AnalysisLimits analyses;
  // A local process lives and says nothing: to be killed, so that it is replaced. Called once a
  // process, on the scheduler's thread; must not block. `why` is about the process.
  std::function<void(const LocalProcess& process, absl::string_view why)> on_hung{};
};

// The options with every time that waits for a sign of life in proportion to `silence`.
SchedulerOptions WithSilence(absl::Duration silence);

struct WorkerInfo {
  std::string name;
  std::string device;
  std::string device_kind;
  std::string build;
  bool analysis = false;  // its role: it is asked analyses and never granted a run
  uint32_t lanes = 0;
  uint64_t memory_bytes = 0;  // for all lanes together; 0: not known
  bool attached = false;
  bool busy = false;  // it trains, or makes an analysis
  storage::Micros attach_time = 0;
  std::vector<std::string> runs;
};

// How a local worker process ended, as its supervisor saw it.
struct WorkerExit {
  std::string worker;
  bool by_itself =
      false;  // exit code or SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL; not SIGKILL or SIGTERM
  std::string last_words;  // for the runs' history, such as "killed by SIGSEGV"
  bool analysis = false;   // its role
};

// A state machine over a store: not thread-safe, driven by one thread (SchedulerThread) or by a
// test.
class Scheduler {
 public:
  using Session = uint64_t;

  Scheduler(storage::Store* store, const Clock* clock, SchedulerOptions options,
            std::function<std::string()> new_lease_id);
  ~Scheduler();

  // How what the store calls back on its own thread gets to the scheduler's (SchedulerThread sets
  // it). Without it the work is done where the store calls. Before the first Open.
  using Post = std::function<void(std::function<void()>)>;
  void SetPost(Post post);

  // Loads the leases that an earlier process left; their workers have start_grace to come back.
  absl::Status Start();

  // A stream was accepted; its first message must be Hello. Messages of a session whose stream was
  // replaced or closed are ignored. Malformed messages close the stream with INVALID_ARGUMENT; the
  // lease that a malformed event names is lost.
  Session Open(std::shared_ptr<WorkerStream> stream);
  void Receive(Session session, const worker::v1::FromWorker& message);
  void Closed(Session session);

  // A local process was started, or found running; it is watched until Exited.
  void Started(const LocalProcess& process);
  // To be called before the next process of that name is started.
  void Exited(const WorkerExit& exit);
  // The store has taken these runs from their leases: their workers are told to stop them.
  void Withdraw(const std::vector<storage::Withdrawal>& withdrawals);
  // Grants what can be granted, each run under a lease of its own: call when runs were queued.
  void Dispatch();
  // Expires leases; call at least every second.
  void Tick();
  // Asks every worker to save and leave; from now on nothing is granted.
  void DrainAll();

  std::vector<WorkerInfo> Workers() const;
  // Thread-safe, unlike the rest.
  Analyses& analyses();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Random 128 bits as 32 hex digits, from the system's generator.
std::string RandomLeaseId();

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_SCHEDULER_H_
