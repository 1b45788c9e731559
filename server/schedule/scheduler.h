// Grants queued runs to attached workers and decides when a lease is lost: the server's side of the
// lease protocol. Each part of its work has its own file.
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
#include "server/schedule/pilots.h"
#include "server/schedule/workers.h"
#include "storage/lease_store.h"

namespace ablate::schedule {

// Workers that are attached or were within the last hour, in all and of a user. A cluster's come
// and go, as one user's.
inline constexpr size_t kMaxKnownWorkers = 8'000;
inline constexpr ptrdiff_t kMaxKnownWorkersOfUser = 4'000;

// A worker process on this machine, as its supervisor sees it.
struct LocalProcess {
  std::string worker;
  int64_t pid = 0;
};

struct SchedulerOptions {
  absl::Duration heartbeat = absl::Seconds(5);
  absl::Duration silence = absl::Seconds(30);      // without a message: the lease is lost
  absl::Duration absence = absl::Seconds(10);      // without a stream: the lease is lost
  absl::Duration start_grace = absl::Seconds(60);  // after a start, nothing expires before this
  // A local process without a stream for this long is considered hung.
  absl::Duration attach_timeout = absl::Minutes(2);
  // If a lane makes no step for this long, its lease is lost.
  absl::Duration step_watchdog = absl::Minutes(10);
  // Cancelled runs are stopped after this time even if their states aren't saved.
  absl::Duration save_timeout = absl::Seconds(2);
  uint64_t credit_bytes = 4 << 20;  // unacknowledged event bytes per lease
  uint32_t runs_per_lane = 2;       // one that trains, and those granted in advance
  // Short runs are granted further in advance, until a lane has about this much work.
  absl::Duration work_per_lane = absl::Seconds(2);
  // Workers that compute other numbers than fingerprints identify, such as one that outlived an
  // upgrade of the server, keep their leases and get nothing new. 0: any.
  uint32_t numerics_version = engine::kNumericsVersion;
  // The same for workers whose version lacks features that runs may ask for.
  uint32_t config_version = engine::kConfigVersion;
  // Returns a user's lane quota. Called on the scheduler's thread; must not block. Null: no quotas.
  MaxLanes max_lanes{};
  AnalysisLimits analyses;
  // Called if a local process lives but is silent, so that the caller kills and replaces it. Called
  // once per process, on the scheduler's thread; must not block. `why` is about the process.
  std::function<void(const LocalProcess& process, absl::string_view why)> on_hung{};
};

// Returns options whose timeouts for a sign of life are scaled in proportion to `silence`.
SchedulerOptions WithSilence(absl::Duration silence);

struct WorkerInfo {
  std::string name;
  std::string device;
  std::string device_kind;
  std::string build;
  std::map<std::string, std::string> trainers;  // as in WorkerState
  std::string no_programs;                      // as in WorkerState
  bool analysis = false;                        // its role: it gets analyses and never a run
  uint32_t lanes = 0;
  uint64_t memory_bytes = 0;  // for all lanes together; 0: unknown
  bool attached = false;
  bool busy = false;  // it trains, or computes an analysis
  storage::Micros attach_time = 0;
  std::vector<std::string> runs;
  struct Training {
    std::string run;
    double steps_per_second = 0;  // 0: unknown
    std::vector<float> losses;    // as in TrainingMeter
  };
  std::vector<Training> training;  // the first of `runs`: those that its lanes train
  uint32_t busy_lanes = 0;         // that train them
  std::optional<worker::v1::DeviceUse> device_use;  // of an attached worker's GPU, if known
  std::string unusable;                             // why its device is left alone; empty: it isn't
  storage::Micros end_time = 0;                     // as in WorkerState
};

// The end of a local worker process, as its supervisor saw it.
struct WorkerExit {
  std::string worker;
  // True for an exit code or SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL; false for SIGKILL and
  // SIGTERM.
  bool by_itself = false;
  std::string last_words;  // for the runs' history, as "killed by SIGSEGV"
  bool analysis = false;   // its role
  bool drained = false;    // it can't use its device, which is left alone for a while
};

// A state machine over a store. Not thread-safe: driven by one thread (SchedulerThread) or by a
// test.
class Scheduler {
 public:
  using Session = uint64_t;

  Scheduler(storage::LeaseStore* store, const Clock* clock, SchedulerOptions options,
            std::function<std::string()> new_lease_id);

  // Moves the store's callbacks to the scheduler's thread (SchedulerThread sets it). Without it
  // they run on the store's thread. Set it before the first Open.
  using Post = std::function<void(std::function<void()>)>;
  void SetPost(Post post);

  // Loads the leases that an earlier process left; their workers have start_grace to return.
  absl::Status Start();

  // Adds an accepted stream; its first message must be Hello. Messages of a session whose stream
  // was replaced or closed are ignored. Malformed messages close the stream with INVALID_ARGUMENT;
  // the lease that a malformed event names is lost.
  Session Open(std::shared_ptr<WorkerStream> stream);
  void Receive(Session session, const worker::v1::FromWorker& message);
  // Passes received events to the store and forgets the session.
  void Closed(Session session);

  // Starts to watch a local process, new or found running, until Exited.
  void Started(const LocalProcess& process);
  // Call it before the next process of that name is started.
  void Exited(const WorkerExit& exit);
  // Asks the workers of these leases for their runs' states. Calls `saved` once each is durable,
  // its lease has ended, or save_timeout has passed; at once if nothing trains.
  void Save(const std::vector<storage::Withdrawal>& leases, std::function<void()> saved);
  // Tells the workers of these leases, which the store has ended, to stop the runs.
  void Withdraw(const std::vector<storage::Withdrawal>& withdrawals);
  // Grants all runs that can be granted, each under a new lease. Call it when runs were queued.
  // While the store commits a grant, the call is deferred until the answer; after a failure, until
  // the next tick.
  void Dispatch();
  // Expires leases; call it at least every second.
  void Tick();
  // Asks every worker of this machine to save and leave; nothing is granted from now on. Workers
  // elsewhere continue to train, and return to the next server.
  void DrainAll();

  // Returns the workers that are attached or were within the last hour, and those of drained
  // devices.
  std::vector<WorkerInfo> Workers() const;
  // Notes the pilots of a cluster of `user`, whose worker token the report used, and returns what
  // its launcher is to do. `queued` are the runs that wait for the pilots' device kind.
  // INVALID_ARGUMENT names a wrong field; RESOURCE_EXHAUSTED if there are too many clusters.
  absl::StatusOr<worker::v1::SyncPilotsResponse> SyncPilots(
      const std::string& user, const worker::v1::SyncPilotsRequest& request,
      const std::vector<storage::QueuedLanes>& queued, const storage::DeviceShares& shares);
  // Returns the work for the cluster's pilots, or all workers of `user` if it is empty; `queued`
  // are the runs that wait for the device kind.
  PilotWork WorkForPilots(const std::string& user, absl::string_view cluster,
                          absl::string_view device_kind,
                          const std::vector<storage::QueuedLanes>& queued,
                          const storage::DeviceShares& shares) const;
  const Pilots& pilots() const { return pilots_; }
  const MaxLanes& max_lanes() const { return options_.max_lanes; }
  // Thread-safe, unlike the rest.
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
  // A request to the store, and its session.
  struct Batch {
    Session session = 0;
    std::string worker;
    std::string incarnation;
    SharedGroup group;
  };
  using Results = absl::StatusOr<std::vector<storage::Applied>>;

  // Wraps the handling of a store's answer so that it runs on the scheduler's thread, or not at all
  // once the scheduler is gone.
  template <typename Answer>
  std::function<void(Answer)> OnThread(std::function<void(const Answer&)> work) const {
    return [work = std::move(work), post = post_,
            alive = std::weak_ptr<const bool>(alive_)](Answer answer) {
      post([work, alive, answer = std::move(answer)] {
        if (!alive.expired()) work(answer);
      });
    };
  }

  // Leases whose runs' states a caller waits for.
  struct Saving {
    std::set<std::string> leases;
    std::function<void()> saved;
    absl::Duration until;
  };

  // Receives the leases that the store ends by itself.
  void ReceiveWithdrawals();

  // saving.cc
  void NoteSaved(const storage::LeaseEvent& event);
  void EndSavings(const std::function<bool(const Saving&)>& ends);

  // sessions.cc
  void OnHello(Session id, const worker::v1::Hello& hello);
  // Returns RESOURCE_EXHAUSTED if the worker would be one too many.
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
  //
  // `message` holds an event.
  void OnEvent(Session id, const worker::v1::FromWorker& message);
  void NoteProgress(const std::string& worker, const storage::LeaseEvent& event);
  // Ends a lease whose worker sent an invalid event.
  void Reject(Session id, const std::string& lease, storage::LeaseEnding ending);
  void Pump(Session id);
  void Submit(Batch batch);
  void OnApplied(const Batch& batch, const Results& results);
  void OnRefused(const Batch& batch, const absl::Status& why);
  void Resubmit(const Batch& batch, const std::vector<SharedGroup>& parts);
  void Answer(Session id, const EventGroup& group, const std::vector<storage::Applied>& results);
  void LeaseLeft(const Batch& batch, const storage::LeaseEvent& event);

  // dispatch.cc
  //
  // Workers that get runs, by name.
  using Takers = std::map<std::string, WorkerState*>;
  Takers TakersOf(absl::string_view device_kind);
  // Adds leases for runs of the kind; sets dispatch_again_ if there may be more.
  void AssignKind(absl::string_view device_kind, std::vector<storage::NewLease>* leases);
  // Adds a lease for each run at the front of the queue that a worker has a place for. Removes the
  // workers that a run has to wait for.
  void Assign(FairQueue* queue, Takers* takers, std::vector<storage::NewLease>* leases);
  // Reads at most `page` queued runs of each user.
  absl::StatusOr<FairQueue> WaitingFor(absl::string_view device_kind,
                                       const std::set<std::string>& trainers, uint32_t page);
  // Returns the users' shares. While there are many leases, which are all read for it, the shares
  // are up to half a second old, except for what was granted since.
  absl::StatusOr<storage::DeviceShares> Shares();
  // Makes the leases in one transaction, because a commit each would dominate the cost of short
  // runs.
  void Grant(std::vector<storage::NewLease> leases);
  void OnGranted(const std::vector<storage::NewLease>& leases,
                 const absl::StatusOr<storage::Grants>& granted);
  // Sends a lease to its worker, or ends it if the worker has gone meanwhile.
  void HandOut(const storage::NewLease& made, const storage::GrantedRun& run);
  // Returns true if it has the run's trainer, time for it, and its lanes or as many as the largest
  // known worker of the kind. A large worker that is away for a moment still counts.
  bool CanTrain(const WorkerState& worker, const storage::QueuedRun& run);
  // Returns the worker for a run; the end if none has a place.
  Takers::const_iterator LeastLoaded(const storage::QueuedRun& run, const Takers& takers);
  // Returns true if it doesn't need the next run at once.
  bool HasWork(const WorkerState& worker) const;
  bool TakesNewRuns(const WorkerState& worker) const;
  // Returns false if the run would probably lose its work, because another scheduler ends the
  // worker first.
  bool HasTimeFor(const WorkerState& worker, const storage::QueuedRun& run);
  uint32_t RunsPerLane(const storage::QueuedRun& run);
  std::optional<double> StepMicros(const std::string& shape);

  // expiry.cc
  //
  // Returns the lease; null if the worker doesn't hold it.
  HeldLease* FindLease(const std::string& worker, absl::string_view lease);
  // Decides that the lease ends and has the store commit it; without disk room, again at later
  // ticks.
  void End(const std::string& worker, const std::string& lease, storage::LeaseEnding ending);
  void TryEnd(const std::string& worker, const std::string& lease);
  void OnEnded(const std::string& worker, const std::string& lease, const absl::Status& status);
  // Ends all leases of the worker as lost; those that never began to train cost nothing.
  void Lose(const std::string& worker, absl::string_view why);
  void CheckSilence();
  void CheckProcesses();
  // Reports a hung process to its supervisor, once.
  void GiveUpProcess(const std::string& worker, absl::string_view why);
  void CheckAbsence();
  void CheckSteps();
  void GiveUpOn(const std::string& name);
  void RetryEnds();
  // Returns false after a start and after a pause of this process, because messages are still
  // unread.
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
    absl::Duration alone_since;  // time since it has had no stream
    bool given_up = false;
  };
  std::vector<Saving> savings_;
  std::map<std::string, Watched> processes_;   // this machine's worker processes, by name
  std::map<std::string, WorkerExit> drained_;  // last ends of workers of drained devices, by name
  Pilots pilots_;
  Analyses analyses_;
  Session last_session_ = 0;
  uint64_t grants_ = 0;
  // True while the store commits a grant. Until its answer the queue is out of date, and nothing
  // else is granted.
  bool granting_ = false;
  bool dispatch_again_ = false;  // once that answer has come
  // Leases withdrawn meanwhile: a store in memory may answer a cancel first.
  std::set<std::string> withdrawn_;
  bool draining_ = false;
  // Time when the store last had no disk room; leases that wait for it make no steps.
  absl::Duration no_room_at_ = -absl::InfiniteDuration();

  struct StepTime {
    std::optional<double> micros;
    absl::Duration until;
  };
  std::map<std::string, StepTime> step_times_;
  storage::DeviceShares shares_;  // as last read, with what was granted since
  absl::Duration shares_at_ = -absl::InfiniteDuration();
  size_t queueing_users_ = 1;  // as last read

  // Reset with the scheduler, so that later answers of the store are dropped.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_SCHEDULER_H_
