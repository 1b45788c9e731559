// The scheduler's state and the parts of its work; each part has a file of its own.
#ifndef ABLATE_SERVER_SCHEDULE_SCHEDULER_IMPL_H_
#define ABLATE_SERVER_SCHEDULE_SCHEDULER_IMPL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/schedule/intake.h"
#include "server/schedule/scheduler.h"
#include "server/schedule/workers.h"

namespace ablate::schedule {

class Scheduler::Impl {
 public:
  Impl(storage::Store* store, const Clock* clock, SchedulerOptions options,
       std::function<std::string()> new_lease_id);

  void SetPost(Post post) { post_ = std::move(post); }
  absl::Status Start();
  std::vector<WorkerInfo> Workers() const;
  Analyses& analyses() { return analyses_; }

  // sessions.cc
  Session Open(std::shared_ptr<WorkerStream> stream);
  void Receive(Session id, const worker::v1::FromWorker& message);
  void Closed(Session id);
  void DrainAll();

  // dispatch.cc
  void Dispatch();

  // expiry.cc
  void Started(const LocalProcess& process);
  void Exited(const WorkerExit& exit);
  void Withdraw(const std::vector<storage::Withdrawal>& withdrawals);
  void Tick();

 private:
  struct Attachment {
    std::shared_ptr<WorkerStream> stream;
    std::string worker;  // empty before Hello
    std::string incarnation;
    absl::Duration heard;
    Intake intake;
  };
  // What the store was given, and for whom.
  struct Batch {
    Session session = 0;
    std::string worker;
    std::string incarnation;
    SharedGroup group;
  };
  using Results = absl::StatusOr<std::vector<storage::Applied>>;

  // sessions.cc
  void OnHello(Session id, const worker::v1::Hello& hello);
  void OnAnalysis(Session id, const worker::v1::FromWorker& message);
  void Introduce(Session id, const worker::v1::Hello& hello);
  absl::Status SendVerdicts(Session id, const worker::v1::Hello& hello);
  void EndAbsentLeases(const worker::v1::Hello& hello);
  void OnHeartbeat(Session id, const worker::v1::Heartbeat& heartbeat);
  void SendTo(Session id, const worker::v1::ToWorker& message);
  void SendCancel(Session id, absl::string_view lease, absl::string_view run);
  // Passes what has arrived to the store and forgets the session.
  void Forget(Session id);
  void Close(Session id, const absl::Status& why);

  // events.cc
  void OnEvent(Session id, const worker::v1::Event& event);
  void Note(const std::string& worker, const storage::LeaseEvent& event);
  // The lease that sent this can't go on.
  void Reject(Session id, absl::string_view lease, LeaseEnding ending);
  void Pump(Session id);
  void Submit(Batch batch);
  void OnApplied(const Batch& batch, const Results& results);
  void OnRefused(const Batch& batch, const absl::Status& why);
  void Resubmit(const Batch& batch, const std::vector<SharedGroup>& parts);
  void Answer(Session id, const EventGroup& group, const std::vector<storage::Applied>& results);
  void RunLeft(const Batch& batch, const storage::LeaseEvent& event);

  // dispatch.cc
  absl::Status DispatchKind(absl::string_view device_kind);
  // A lease for each run at the front of the queue that a worker has a place for.
  std::vector<storage::NewLease> Assign(const std::vector<storage::QueuedRun>& queue);
  // Makes them in one transaction, for a commit each is what granting short runs costs. None of
  // their runs is queued afterwards.
  // How many of them were handed out.
  absl::StatusOr<size_t> Grant(const std::vector<storage::NewLease>& leases);
  void HandOut(const storage::NewLease& lease, std::vector<storage::GrantedRun> runs);
  // The worker for a run; null if none has a place beside what it has and `assigned`.
  WorkerState* LeastLoaded(const storage::QueuedRun& run,
                           const std::map<std::string, uint64_t>& assigned, std::string* name);
  bool TakesNewRuns(const WorkerState& worker) const;
  uint32_t RunsPerLane(const storage::QueuedRun& run);
  std::optional<double> StepMicros(const std::string& shape);

  // expiry.cc
  // Decides the lease's end and commits it, or tries again at later ticks if there is no room.
  void End(WorkerState* worker, absl::string_view lease, LeaseEnding ending);
  void TryEnd(WorkerState* worker, HeldLeases::iterator lease);
  // Ends all leases of the worker as lost; those that never began to train cost nothing.
  void Lose(WorkerState* worker, absl::string_view why);
  void CheckSilence();
  void CheckProcesses();
  // A process hangs: its supervisor is told, once.
  void GiveUpProcess(const std::string& worker, absl::string_view why);
  void CheckAbsence();
  void CheckSteps();
  void GiveUpOn(WorkerState* worker);
  void RetryEnds();
  // Neither after a start nor after a pause of this process: what workers sent is still to be read.
  bool MayExpire() const;

  storage::Store* const store_;
  const Clock* const clock_;
  const SchedulerOptions options_;
  const std::function<std::string()> new_lease_id_;
  Post post_;

  absl::Duration start_;
  absl::Duration last_tick_;
  absl::Duration resumed_at_ = -absl::InfiniteDuration();
  ablate::schedule::Workers workers_;
  std::map<Session, Attachment> sessions_;
  struct Watched {
    int64_t pid = 0;
    absl::Duration alone_since;  // without a stream
    bool given_up = false;
  };
  std::map<std::string, Watched> processes_;  // of this machine's workers, by name
  Analyses analyses_;
  Session last_session_ = 0;
  uint64_t grants_ = 0;
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

#endif  // ABLATE_SERVER_SCHEDULE_SCHEDULER_IMPL_H_
