// A scheduler over a store in memory, scripted workers, and a clock to move.
#ifndef ABLATE_TESTS_SCHEDULE_SCHEDULER_FIXTURE_H_
#define ABLATE_TESTS_SCHEDULE_SCHEDULER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "server/schedule/scheduler.h"
#include "tests/schedule/fake_clock.h"
#include "tests/schedule/lease_store_proxy.h"

namespace ablate::schedule {

// Returns a run's spec as it is stored, with a task, the seed and the steps only.
ablate::v1::RunSpec RecallSpec(uint32_t seed, uint32_t steps);

// Runs out of room on request, and delays writes.
class FaultyStore : public LeaseStoreProxy {
 public:
  using LeaseStoreProxy::LeaseStoreProxy;

  void SetFull(bool full) { full_ = full; }
  // Makes the disk full from the next group on that is refused for its content.
  void FillOnceRefused() { fill_once_refused_ = true; }
  // Null: no blobs, as in memory.
  void SetBlobs(storage::Blobs* blobs) { blobs_ = blobs; }
  void HoldBack() { holds_back_ = true; }
  // Commits the delayed writes in order; their answers still wait.
  void CommitHeldBack();
  // Commits them and answers.
  void Release();
  // Returns the number of calls of Queue, GrantAsync and EndLeaseAsync.
  int looks() const { return looks_; }
  int grants() const { return grants_; }
  int ends() const { return ends_; }

  storage::Blobs* blobs() override { return blobs_; }
  Or<std::vector<storage::QueuedRun>> Queue(Text device_kind, const std::set<std::string>& trainers,
                                            uint32_t limit) override {
    ++looks_;
    return target()->Queue(device_kind, trainers, limit);
  }
  void GrantAsync(std::vector<storage::NewLease> leases, Done<storage::Grants> done) override;
  void ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                  Done<std::vector<storage::Applied>> done) override;
  void EndLeaseAsync(std::string lease, storage::LeaseEnding ending, DoneEnding done) override;

 private:
  absl::Status Room() const;
  // Delays a write; `commit` commits it and returns its answer.
  void Write(std::function<std::function<void()>()> commit);

  storage::Blobs* blobs_ = nullptr;
  bool full_ = false;
  bool fill_once_refused_ = false;
  int looks_ = 0;
  int grants_ = 0;
  int ends_ = 0;
  bool holds_back_ = false;
  std::deque<std::function<std::function<void()>()>> held_back_;
  std::deque<std::function<void()>> answers_;
};

// Runs posted answers of the store after each call of a scheduler, as on its thread, on which calls
// never nest.
class DrivenScheduler {
 public:
  class Call {
   public:
    explicit Call(DrivenScheduler* driven) : driven_(driven) { ++driven_->calls_; }
    ~Call() {
      if (--driven_->calls_ == 0) driven_->RunPosted();
    }
    Call(const Call&) = delete;
    Scheduler* operator->() const { return driven_->scheduler_.get(); }

   private:
    DrivenScheduler* const driven_;
  };

  void Reset(std::unique_ptr<Scheduler> scheduler);
  // For one call: posted answers run at the end of the full expression.
  Call operator->() { return Call(this); }

 private:
  void RunPosted();

  std::unique_ptr<Scheduler> scheduler_;
  std::deque<std::function<void()>> posted_;
  int calls_ = 0;  // in progress
};

class RecordingStream : public WorkerStream {
 public:
  void Send(const worker::v1::ToWorker& message) override { received.push_back(message); }
  void Close(const absl::Status& why) override { closed = why; }

  std::vector<worker::v1::ToWorker> received;
  absl::Status closed;  // OK while open
};

class SchedulerTest : public ::testing::Test {
 protected:
  // A worker's side of one session.
  struct Peer {
    Scheduler::Session session = 0;
    std::shared_ptr<RecordingStream> stream;

    bool open() const { return stream->closed.ok(); }
    std::vector<worker::v1::Grant> grants() const;
    std::vector<worker::v1::HeldLeaseDecision> decisions() const;
    // Returns "lease/run" of each cancel.
    std::vector<std::string> cancels() const;
    // Returns the highest acknowledged number; 0 if none.
    uint64_t acked(const std::string& lease) const;
    bool drained() const;
  };

  SchedulerTest();

  // Makes a new scheduler over the same store.
  void Restart();
  void Restart(SchedulerOptions options);
  // Owner of the experiments that Queue submits from now on, and device and lanes of their runs.
  std::string owner_;
  std::string device_of_runs_ = "cpu";
  uint32_t lanes_of_runs_ = 1;
  uint32_t whole_seconds_of_runs_ = 0;
  uint32_t max_failed_ = 0;  // of these experiments; 0: no limit
  // Queues runs "NAME-0", "NAME-1", …; returns the experiment.
  std::string Queue(const std::string& name, uint32_t runs, uint32_t steps = 10,
                    uint32_t numerics_version = 0, const std::string& trainer = "torch");

  static worker::v1::FromWorker Hello(const std::string& name, const std::string& incarnation,
                                      uint32_t lanes = 1);
  // Returns the hello of a worker that still holds a lease.
  static worker::v1::FromWorker Holding(worker::v1::FromWorker hello, const std::string& lease,
                                        uint64_t first_unacked);
  Peer Open();
  Peer Attach(const worker::v1::FromWorker& hello);
  Peer Attach(const std::string& name = "w", const std::string& incarnation = "w#1",
              uint32_t lanes = 1);
  // Attaches a worker with one lane, after start_grace: it trains a-0 and has a-1 granted in
  // advance.
  Peer TrainingWorker();
  void Send(const Peer& peer, const worker::v1::FromWorker& message);
  // Returns an incomplete event of a grant's only run.
  static worker::v1::FromWorker EventOf(const worker::v1::Grant& grant, uint64_t seq);
  void SendStarted(const Peer& peer, const worker::v1::Grant& grant, uint64_t seq);
  void SendPoints(const Peer& peer, const worker::v1::Grant& grant, uint64_t seq, uint32_t step);
  void SendResumeState(const Peer& peer, const worker::v1::Grant& grant, uint64_t seq,
                       const std::string& blob);
  void SendFinished(const Peer& peer, const worker::v1::Grant& grant, uint64_t seq, uint32_t step);
  // Sends a failure after which the run isn't tried again.
  void SendFailed(const Peer& peer, const worker::v1::Grant& grant, uint64_t seq);
  void SendHeartbeat(const Peer& peer);
  void SendProgress(const Peer& peer, const worker::v1::Grant& grant, absl::Duration since);

  // Lets time pass second by second, with the scheduler's ticks.
  void Pass(absl::Duration time);
  // The same with a heartbeat every second.
  void PassWithHeartbeats(absl::Duration time, const std::vector<Peer>& peers);

  storage::RunRecord Run(const std::string& name);
  // Returns the kinds of the run's history, in order.
  std::vector<std::string> HistoryOf(const std::string& name);

  FakeClock clock_;
  std::unique_ptr<storage::Store> disk_;
  FaultyStore store_;
  uint64_t leases_ = 0;
  DrivenScheduler scheduler_;
};

}  // namespace ablate::schedule

#endif  // ABLATE_TESTS_SCHEDULE_SCHEDULER_FIXTURE_H_
