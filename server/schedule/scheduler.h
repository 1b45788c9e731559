// Hands queued runs to attached workers and decides when a lease is lost. The server's side of the
// lease protocol; each part of its work has a file of its own.
#ifndef ABLATE_SERVER_SCHEDULE_SCHEDULER_H_
#define ABLATE_SERVER_SCHEDULE_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/engine/trainer.h"
#include "server/schedule/analyses.h"
#include "server/schedule/event_queue.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/workers.h"
#include "storage/lease_store.h"

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
  absl::Duration attach_timeout = absl::Minutes(2);
  // No step for so long: the run is taken back as lost.
  absl::Duration step_watchdog = absl::Minutes(10);
  // Runs that are cancelled are stopped after so long, also if their states aren't saved.
  absl::Duration save_timeout = absl::Seconds(2);
  uint64_t credit_bytes = 4 << 20;  // unacknowledged event bytes a lease may have
  uint32_t runs_per_lane = 2;       // one that trains and what is granted ahead of it
  // Short runs are granted further ahead, until a lane has about this much to do.
  absl::Duration work_per_lane = absl::Seconds(2);
  // Workers that compute other numbers than fingerprints promise, such as one that outlived an
  // upgrade of the server, keep what they hold and get nothing new. 0: any.
  uint32_t numerics_version = engine::kNumericsVersion;
  // The same holds of workers that know less than runs may ask for.
  uint32_t config_version = engine::kConfigVersion;
  // Of users with a quota of lanes. Called on the scheduler's thread; must not block. Null: nobody.
  MaxLanes max_lanes{};
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
  std::map<std::string, std::string> trainers;  // as WorkerState's
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
  // Exit code or SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL; not SIGKILL or SIGTERM.
  bool by_itself = false;
  std::string last_words;  // for the runs' history, such as "killed by SIGSEGV"
  bool analysis = false;   // its role
};

// A state machine over a store: not thread-safe, driven by one thread (SchedulerThread) or by a
// test.
class Scheduler {
 public:
  using Session = uint64_t;

  Scheduler(storage::LeaseStore* store, const Clock* clock, SchedulerOptions options,
            std::function<std::string()> new_lease_id);

  // How what the store calls back on its own thread gets to the scheduler's (SchedulerThread sets
  // it). Without it the work is done where the store calls. Before the first Open.
  using Post = std::function<void(std::function<void()>)>;
  void SetPost(Post post) { post_ = std::move(post); }

  // Loads the leases that an earlier process left; their workers have start_grace to come back.
  absl::Status Start();

  // A stream was accepted; its first message must be Hello. Messages of a session whose stream was
  // replaced or closed are ignored. Malformed messages close the stream with INVALID_ARGUMENT; the
  // lease that a malformed event names is lost.
  Session Open(std::shared_ptr<WorkerStream> stream);
  void Receive(Session session, const worker::v1::FromWorker& message);
  // Passes what has arrived to the store and forgets the session.
  void Closed(Session session);

  // A local process was started, or found running; it is watched until Exited.
  void Started(const LocalProcess& process);
  // To be called before the next process of that name is started.
  void Exited(const WorkerExit& exit);
  // Asks the workers of these leases for their runs' states. Calls `saved` once each of them is
  // durable, its lease has ended, or save_timeout has passed; at once if nothing trains.
  void Save(const std::vector<storage::Withdrawal>& leases, std::function<void()> saved);
  // The store has ended these leases: their workers are told to stop the runs.
  void Withdraw(const std::vector<storage::Withdrawal>& withdrawals);
  // Grants what can be granted, each run under a lease of its own: call when runs were queued.
  // While a grant is with the store it is done once that is answered; after a failure at the next
  // tick.
  void Dispatch();
  // Expires leases; call at least every second.
  void Tick();
  // Asks every worker of this machine to save and leave; from now on nothing is granted. Those
  // elsewhere train on, and come back to the next server.
  void DrainAll();

  std::vector<WorkerInfo> Workers() const;
  // These are thread-safe, unlike the rest.
  absl::Duration save_timeout() const { return options_.save_timeout; }
  Analyses& analyses() { return analyses_; }

 private:
  struct Attachment {
    std::shared_ptr<WorkerStream> stream;
    std::string worker;  // empty before Hello
    std::string incarnation;
    absl::Duration heard;
    EventQueue events;
  };
  // What the store was given, and for whom.
  struct Batch {
    Session session = 0;
    std::string worker;
    std::string incarnation;
    SharedGroup group;
  };
  using Results = absl::StatusOr<std::vector<storage::Applied>>;

  // Wraps what is to be done with an answer of the store, so that it is done on the scheduler's
  // thread; nothing is once the scheduler is gone.
  template <typename Answer>
  std::function<void(Answer)> OnThread(std::function<void(const Answer&)> work) const {
    return [work = std::move(work), post = post_,
            alive = std::weak_ptr<const bool>(alive_)](Answer answer) {
      post([work, alive, answer = std::move(answer)] {
        if (!alive.expired()) work(answer);
      });
    };
  }

  // Leases whose runs' states somebody waits for.
  struct Saving {
    std::set<std::string> leases;
    std::function<void()> saved;
    absl::Duration until;
  };

  // saving.cc
  void NoteSaved(const storage::LeaseEvent& event);
  void EndSavings(const std::function<bool(const Saving&)>& ends);

  // sessions.cc
  void OnHello(Session id, const worker::v1::Hello& hello);
  // RESOURCE_EXHAUSTED if it would be one too many.
  absl::Status CheckKnownWorkers(const std::string& worker) const;
  void OnAnalysis(Session id, const worker::v1::FromWorker& message);
  void RegisterWorker(Session id, const worker::v1::Hello& hello);
  absl::Status SendDecisions(Session id, const worker::v1::Hello& hello);
  void EndAbsentLeases(const worker::v1::Hello& hello);
  void OnHeartbeat(Session id, const worker::v1::Heartbeat& heartbeat);
  void SendTo(Session id, const worker::v1::ToWorker& message);
  void SendCancel(Session id, absl::string_view lease);
  void Close(Session id, const absl::Status& why);

  // events.cc
  // `message` holds an event.
  void OnEvent(Session id, const worker::v1::FromWorker& message);
  void NoteProgress(const std::string& worker, const storage::LeaseEvent& event);
  // The lease that sent this can't go on.
  void Reject(Session id, const std::string& lease, storage::LeaseEnding ending);
  void Pump(Session id);
  void Submit(Batch batch);
  void OnApplied(const Batch& batch, const Results& results);
  void OnRefused(const Batch& batch, const absl::Status& why);
  void Resubmit(const Batch& batch, const std::vector<SharedGroup>& parts);
  void Answer(Session id, const EventGroup& group, const std::vector<storage::Applied>& results);
  void LeaseLeft(const Batch& batch, const storage::LeaseEvent& event);

  // dispatch.cc
  // Workers by name that are granted runs.
  using Takers = std::map<std::string, WorkerState*>;
  Takers TakersOf(absl::string_view device_kind);
  // Adds leases for runs of the kind; notes in dispatch_again_ if there may be more.
  void AssignKind(absl::string_view device_kind, std::vector<storage::NewLease>* leases);
  // Adds a lease for each run at the front of the queue that a worker has a place for. Takes away
  // those workers that a run has to wait for.
  void Assign(FairQueue* queue, Takers* takers, std::vector<storage::NewLease>* leases);
  // At most `page` runs of each user.
  absl::StatusOr<FairQueue> WaitingFor(absl::string_view device_kind,
                                       const std::set<std::string>& trainers, uint32_t page);
  // Makes them in one transaction, for a commit each is what granting short runs costs.
  void Grant(std::vector<storage::NewLease> leases);
  void OnGranted(const std::vector<storage::NewLease>& leases,
                 const absl::StatusOr<storage::Grants>& granted);
  // Gives a lease that was made to its worker, or ends it if the worker has gone meanwhile.
  void HandOut(const storage::NewLease& made, const storage::GrantedRun& run);
  // The worker for a run; the end if none has a place.
  Takers::const_iterator LeastLoaded(const storage::QueuedRun& run, const Takers& takers);
  // Whether it need not be granted the next run at once.
  bool HasWork(const WorkerState& worker) const;
  bool TakesNewRuns(const WorkerState& worker) const;
  uint32_t RunsPerLane(const storage::QueuedRun& run);
  std::optional<double> StepMicros(const std::string& shape);

  // expiry.cc
  // Null if the worker does not hold it.
  HeldLease* FindLease(const std::string& worker, absl::string_view lease);
  // Decides the lease's end and has it committed; if there is no room, again at later ticks.
  void End(const std::string& worker, const std::string& lease, storage::LeaseEnding ending);
  void TryEnd(const std::string& worker, const std::string& lease);
  void OnEnded(const std::string& worker, const std::string& lease, const absl::Status& status);
  // Ends all leases of the worker as lost; those that never began to train cost nothing.
  void Lose(const std::string& worker, absl::string_view why);
  void CheckSilence();
  void CheckProcesses();
  // A process hangs: its supervisor is told, once.
  void GiveUpProcess(const std::string& worker, absl::string_view why);
  void CheckAbsence();
  void CheckSteps();
  void GiveUpOn(const std::string& name);
  void RetryEnds();
  // Neither after a start nor after a pause of this process: what workers sent is still to be read.
  bool MayExpire() const;

  storage::LeaseStore* const store_;
  const Clock* const clock_;
  const SchedulerOptions options_;
  const std::function<std::string()> new_lease_id_;
  Post post_;

  absl::Duration start_;
  absl::Duration last_tick_;
  absl::Duration resumed_at_ = -absl::InfiniteDuration();
  WorkerStates workers_;
  std::map<Session, Attachment> sessions_;
  struct Watched {
    int64_t pid = 0;
    absl::Duration alone_since;  // without a stream
    bool given_up = false;
  };
  std::vector<Saving> savings_;
  std::map<std::string, Watched> processes_;  // of this machine's workers, by name
  Analyses analyses_;
  Session last_session_ = 0;
  uint64_t grants_ = 0;
  // A grant is with the store. Until its answer comes the queue is out of date, and nothing else is
  // granted.
  bool granting_ = false;
  bool dispatch_again_ = false;  // once that answer has come
  // Leases that were withdrawn meanwhile: a store in memory may answer a cancel first.
  std::set<std::string> withdrawn_;
  bool draining_ = false;
  // When the store last had no room: what waits for it makes no steps.
  absl::Duration no_room_at_ = -absl::InfiniteDuration();

  struct StepTime {
    std::optional<double> micros;
    absl::Duration until;
  };
  std::map<std::string, StepTime> step_times_;

  // Gone once the scheduler is: answers of the store that come later are for nobody.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_SCHEDULER_H_
