// Passes analyses to the workers for analyses and keeps open ones in memory. Samples have a caller
// who waits. A computation may take any time, and yields to one that takes much less. A worker has
// lanes for long and for short computations, so that samples and short computations don't wait for
// a long one. Workers on the cores and on GPUs get requests of their own: none waits for the
// others. Requests for a kind of device that no worker has go to the other kind.
#ifndef ABLATE_SERVER_SCHEDULE_ANALYSES_H_
#define ABLATE_SERVER_SCHEDULE_ANALYSES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/schedule/workers.h"
#include "storage/blobs.h"

namespace ablate::schedule {

struct AnalysisLimits {
  size_t max_pending = 16;                            // waiting and running samples
  size_t message_bytes = 1 << 20;                     // per request: a worker takes 4 MiB at most
  absl::Duration run_time = absl::Seconds(60);        // limit for samples, once a worker has them
  absl::Duration worker_timeout = absl::Seconds(30);  // limit for samples without a worker for them
  // A request for the cores waits for so long after the last worker there has left, or the server
  // has started, before it goes to a GPU. A new process of a worker takes seconds.
  absl::Duration device_timeout = absl::Seconds(30);
  // The same for a computation with a state, on either kind of device, because it loses the state.
  absl::Duration state_timeout = absl::Minutes(10);
  // After this time on its worker, a computation yields to one that takes less than half of its
  // remaining time.
  absl::Duration turn = absl::Seconds(1);
  // The same for one that has yielded before, so that a newcomer waits for less than a second.
  absl::Duration later_turn = absl::Milliseconds(250);
  // A computation is short if its work is at most this, in microseconds.
  double short_work = 5e6;
  absl::Duration exit_timeout = absl::Seconds(1);  // for the reason of a worker's end to arrive
  // A worker that keeps a cancelled analysis for cancel_timeout is replaced if it computes nothing
  // else. If it does, replacement would lose that work; then it is replaced only after
  // held_up_timeout, and only while another analysis waits for the cancelled one's place.
  absl::Duration cancel_timeout = absl::Seconds(10);
  absl::Duration held_up_timeout = absl::Minutes(1);
};

struct AnalysisRequest {
  worker::v1::Analyze message;  // everything except its id
  // Expected total time of a computation in microseconds; 0 for samples.
  double work = 0;
  // Runs alone on its worker until it has saved a state, because it may have crashed its previous
  // worker.
  bool alone = false;
  // Goes to a worker on a GPU while one is attached, and to the cores at once otherwise. Others go
  // to a GPU only if no worker on the cores is attached for device_timeout.
  bool on_gpu = false;
  // Its saved state is from a GPU. A computation with a state waits for its kind of device.
  bool state_on_gpu = false;
  // Size of its state as a fraction of the limit for a worker's computations together.
  double state = 0;
  // Blobs that its worker may read; pinned until the end.
  std::vector<std::shared_ptr<storage::Blobs::Pin>> blobs;
  // Called on any thread, one at a time; must neither block nor call back. `done` is called once,
  // last. `part` is for samples; for computations, `begun` says that a worker has it, `saved`
  // reports its progress and the state from which it will continue, and whether that is from a GPU.
  // `restarted` says that it has lost both because it goes to the other kind of device.
  std::function<void(const worker::v1::AnalysisPart&)> part = nullptr;
  std::function<void()> begun = nullptr;
  std::function<void(const worker::v1::AnalysisSaved&, bool on_gpu)> saved = nullptr;
  std::function<void()> restarted = nullptr;
  std::function<void(const absl::StatusOr<worker::v1::AnalysisResult>&)> done;
};

// Schedules analyses. Nothing is durable: a request ends with the server, with its worker, or when
// it is cancelled. Thread-safe.
class Analyses {
 public:
  using Session = uint64_t;

  Analyses(const Clock* clock, AnalysisLimits limits);
  // Ends every request.
  ~Analyses();

  // --- For callers
  //
  // Submits a request and returns its id, which also grants the right to read its blobs.
  // RESOURCE_EXHAUSTED if too many run or wait, INVALID_ARGUMENT if it is too large, UNAVAILABLE
  // after Stop; `done` isn't called then. Otherwise `done` gets the worker's answer, or UNAVAILABLE
  // (no worker, or it ended), DEADLINE_EXCEEDED (run_time), CANCELLED. A computation waits for a
  // worker without a limit.
  absl::StatusOr<std::string> Submit(AnalysisRequest request);
  // Cancels a request; it has ended when this returns. Does nothing if it had ended before.
  void Cancel(const std::string& id);
  // Returns NOT_FOUND if no worker of this user (worker_names.h) has such an analysis,
  // PERMISSION_DENIED if the blob isn't one of its own.
  absl::Status MayRead(const std::string& id, absl::string_view user,
                       absl::string_view sha256) const;
  // Returns true if a worker of this user has a computation of this id, which may then publish its
  // state and its arrays.
  bool MayWrite(const std::string& id, absl::string_view user) const;
  // Returns the ids of all computations.
  std::vector<std::string> Computations() const;
  // Ends every request, and from now on each new one at once, for the server's shutdown.
  void Stop();

  // --- For the scheduler
  //
  // Adds a worker that runs `slots` requests at a time, at least one. Requests of an earlier
  // process with the name `worker` end now.
  void Attached(Session session, const std::string& worker, uint32_t slots, bool on_gpu,
                std::shared_ptr<WorkerStream> stream);
  // Handles a part, a saved state, a result or a failure. Ignores a message about a request that
  // this session doesn't have (any more).
  void Receive(Session session, const worker::v1::FromWorker& message);
  void Detached(Session session);
  // Records why the worker of this name ended.
  void Exited(absl::string_view worker, absl::string_view last_words);
  // Call it at least every second.
  void Tick();
  bool Busy(Session session) const;

 private:
  // Kinds of slots. A worker with fewer than three takes them in this order.
  enum class Class { kSamples, kShort, kLong };
  static constexpr Class kClasses[] = {Class::kSamples, Class::kShort, Class::kLong};
  struct Pending {
    std::string id;
    AnalysisRequest request;
    Session session = 0;    // session that has it; 0: it waits
    std::string worker;     // name of the worker that has or had it
    absl::Duration since;   // when it began to wait, run or be orphaned
    double progress = 0;    // fraction of its work that is done
    bool yielding = false;  // its worker was asked to stop it
    bool yielded = false;   // it has yielded before
    bool orphaned = false;  // its worker's stream ended
    bool answered = false;  // a part has reached the caller
    bool on_cores = false;  // it stays on the cores: a GPU has too little memory for it
  };
  // A request's claims on a worker.
  struct Share {
    Class kind;
    bool alone;
    double state;
  };
  // A request at a worker. It outlives its Pending until the worker has answered a cancel.
  struct Held {
    Share share;
    absl::Duration withdrawn_at = absl::InfiniteDuration();  // infinite: it is still wanted
  };
  struct Worker {
    std::string name;
    std::shared_ptr<WorkerStream> stream;
    size_t slots = 1;
    bool on_gpu = false;
    std::map<std::string, Held> held;  // by id
    bool drained = false;              // it ends, or was told to: it gets nothing more
  };

  void Dispatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives waiting requests to the workers on GPUs, or to those on the cores.
  void DispatchTo(bool on_gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if a request is for a GPU as long as it waits, false if for the cores.
  bool IsForGpu(const Pending& pending) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if a worker on this kind of device takes requests, now or once it has room.
  bool IsServed(bool on_gpu) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if a worker on this kind of device is ending, or has ended less than `timeout`
  // ago.
  bool MayReturn(bool on_gpu, absl::Duration timeout) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if a request for which a GPU has too little memory can be made on the cores. The
  // caller of samples must not get a part again.
  bool MayUseCores(const Pending& pending) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues a request for which a GPU has too little memory.
  void BeginAgainOnCores(Pending* pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Discards a computation's state and progress.
  static void DropState(Pending* pending);
  void HandTo(Worker* worker, Session session, Pending* pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Class ClassOf(const Pending& pending) const;
  Share ShareOf(const Pending& pending) const;
  // Returns true if neither of two requests has to wait for the other at a worker with a slot for
  // each class.
  static bool FitTogether(const Share& one, const Share& other);
  // Returns true if a worker has room for a request beside what it holds. One slot is for samples,
  // the others are for computations: one of these is kept for short ones, and one for a long one
  // while one waits.
  bool Takes(const Worker& worker, const Share& share) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the work that is left to do, in microseconds.
  static double Left(const Pending& pending);
  // Returns the waiting request of a class with the least work left, the oldest of equals; null if
  // none waits for such a worker.
  Pending* NextWaiting(Class kind, bool on_gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks running requests to yield to waiting ones that take much less.
  void AskToYield() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the running request that has to yield to this one; null if none has to.
  Pending* InTheWayOf(const Pending& waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSaved(Worker* worker, Pending* pending, const worker::v1::AnalysisSaved& saved)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a worker with room for the request; null if there is none.
  Worker* FindIdle(const Pending& next, Session* session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Pending* Find(absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the request, calls its `done`, and tells its worker to stop.
  void End(absl::string_view id, const absl::StatusOr<worker::v1::AnalysisResult>& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOrphansOf(absl::string_view worker, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndAll(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error for a request that has been in its state for too long; OK if it hasn't.
  absl::Status Overdue(const Pending& pending) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Replaces workers that keep a cancelled analysis for too long, by AnalysisLimits.
  void DrainStuck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsStuck(const Worker& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if an analysis waits that such a worker doesn't make beside one with this share.
  bool HoldsUpOthers(const Share& share, bool on_gpu) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const AnalysisLimits limits_;
  mutable Mutex mutex_;
  std::vector<Pending> pending_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::map<Session, Worker> workers_ ABSL_GUARDED_BY(mutex_);
  // When the last worker left: on the cores, and on a GPU.
  absl::Duration alone_since_[2] ABSL_GUARDED_BY(mutex_);
  std::string last_words_ ABSL_GUARDED_BY(mutex_);  // of the last worker that ended
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_ANALYSES_H_
