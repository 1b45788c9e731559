// A worker's process: the real lease book and a trainer that only records its steps.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_WORKER_PROCESS_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/time/time.h"
#include "server/worker/lease_book.h"
#include "tests/schedule/simulation/histories.h"
#include "tests/schedule/simulation/random.h"

namespace ablate::simulation {

// A run has points train/loss at steps 0 … N − 1, eval/loss at multiples of this and at N, and
// checkpoints at this and at N.
inline constexpr uint32_t kEvaluationEvery = 3;
inline constexpr uint32_t kCheckpointStep = 5;

// The environment that a worker's bits depend on, and the one that it reports.
struct Environment {
  std::string real;
  std::string said;
};

class WorkerProcess {
 public:
  WorkerProcess(std::string name, std::string incarnation, Environment environment, uint32_t lanes,
                Histories* histories, Random* random);

  const std::string& incarnation() const { return incarnation_; }
  const Environment& environment() const { return environment_; }
  const worker::LeaseBook& book() const { return book_; }
  // Returns true if it was asked to leave, and nothing is left to report.
  bool finished() const { return draining_ && book_.empty(); }

  worker::v1::FromWorker Hello() const;
  worker::v1::FromWorker Heartbeat(absl::Duration now) const;
  void Disconnected() { book_.Disconnected(); }
  void DropAll();
  void Receive(const worker::v1::ToWorker& message, absl::Duration now);
  // Makes one step of some lane, if one can continue.
  void Train(absl::Duration now);
  // Makes a lane hang in its step until the process ends or its run is stopped.
  void Stick();
  void Drain();
  // Returns the messages since the last call, in order; discard them if there is no stream.
  std::vector<worker::v1::FromWorker> TakeOutgoing();

 private:
  struct Job {
    std::string lease;
    worker::v1::GrantedRun grant;
    uint64_t segment = 0;  // 0: waits for a lane
    uint32_t step = 0;
    bool stuck = false;
    bool ended = false;  // done, but not reported
    absl::Duration progress_at;
    worker::v1::Points points;  // not yet flushed
  };

  void Stop(const std::string& lease);
  void FillLanes(absl::Duration now);
  // Returns false if it refuses its initial state.
  bool Begin(Job* job);
  // Returns false when the job has ended.
  bool Step(Job* job);
  void Finish(Job* job);
  void AddPoint(Job* job, const char* key, uint32_t step);
  void Flush(Job* job);
  void SaveState(Job* job, bool ended = false);
  void SaveCheckpoint(Job* job);
  worker::v1::Event EventOf(const Job& job) const;
  void Report(worker::v1::Event event);

  const std::string name_;
  const std::string incarnation_;
  const Environment environment_;
  Histories* const histories_;
  Random* const random_;
  worker::LeaseBook book_;
  std::deque<Job> waiting_;
  std::vector<std::optional<Job>> lanes_;
  std::vector<worker::v1::FromWorker> outgoing_;
  bool draining_ = false;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_WORKER_PROCESS_H_
