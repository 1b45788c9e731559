// Runs one random schedule: a server, workers and a network between them, faults of every kind,
// then a phase without faults. The seed decides everything.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_SIMULATION_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/schedule/fake_clock.h"
#include "tests/schedule/simulation/delayed_store.h"
#include "tests/schedule/simulation/histories.h"
#include "tests/schedule/simulation/link.h"
#include "tests/schedule/simulation/promises.h"
#include "tests/schedule/simulation/random.h"
#include "tests/schedule/simulation/server_process.h"
#include "tests/schedule/simulation/worker_process.h"

namespace ablate::simulation {

class Simulation {
 public:
  Simulation(uint64_t seed, Mutation mutation);
  ~Simulation();

  // Returns the first violated invariant; empty if all held until the end.
  std::string Run();
  // Records each action as a line; call it before Run.
  void KeepTrace() { keeps_trace_ = true; }
  const std::vector<std::string>& trace() const { return trace_; }

 private:
  struct Slot {
    std::string name;
    uint32_t lanes = 1;
    bool supervised = true;  // its end is reported to the server
    uint32_t processes = 0;
    std::unique_ptr<WorkerProcess> process;  // null: not running
    std::shared_ptr<Link> link;              // null: knows that it has none
    absl::Duration detached_at;
    bool hangs = false;
    std::optional<schedule::WorkerExit> exit;  // not yet reported
  };
  struct Backup {
    std::string image;
    Promises promises;
    std::map<std::string, uint32_t> cancelled;
    std::vector<std::string> runs;
  };
  struct Action {
    void (Simulation::*act)();
    uint32_t weight;
    bool fault;
  };
  static const std::vector<Action>& Actions();

  uint32_t& WeightOf(void (Simulation::*act)());
  void Submit(const char* name, uint32_t first_run, uint32_t runs);
  // Returns a run of a growth; `origin` is the shorter one that it begins from, or empty.
  static storage::NewRun MakeRun(const std::string& name, const std::string& growth, uint32_t steps,
                                 const std::string& origin);
  void Act();
  void Heal();
  void Settle();
  std::string Unfinished();
  void CheckAll();
  void CheckEnd();
  void Fail(const std::string& problem);
  void Trace(const std::string& line);

  // Without faults.
  void DeliverUp();
  void DeliverDown();
  void Commit();
  void Answer();
  void Train();
  void Connect();
  void PassTime();
  void ReportExit();
  void StartWorker();
  void StartServer();
  void WakeWorker();
  void FreeDisk();
  void Check();
  void Grow();
  void AskToSave();

  // Faults.
  void PassLongTime();
  void BreakLink();
  void AbandonLink();
  void KillWorker();
  void HangWorker();
  void StickLane();
  void LeaveWorker();
  void KillServer();
  void DrainServer();
  void MakeBackup();
  void RestoreBackup();
  void CancelExperiment();
  void FillDisk();

  // Returns a stream with messages in that direction; null if there is none.
  std::shared_ptr<Link> AnyBusyLink(bool up);
  void Up(const std::shared_ptr<Link>& link);
  void Down(const std::shared_ptr<Link>& link);
  void ConnectSlot(Slot* slot);
  void EndProcess(Slot* slot, bool by_itself);
  void Report(Slot* slot);
  void StartProcess(Slot* slot);
  void SendOutgoing(Slot* slot);
  void Tick(absl::Duration by);
  Slot& AnySlot();
  void DropDeadLinks();

  Random random_;
  schedule::FakeClock clock_;
  Histories histories_;
  PromiseKeeper promises_;
  ServerProcess server_;
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<Link>> links_;
  std::vector<std::string> runs_;
  std::string cancellable_;                    // experiment
  std::map<std::string, uint32_t> cancelled_;  // runs, with the step at their cancel
  std::optional<Backup> backup_;
  std::vector<uint32_t> weights_;
  std::string problem_;
  bool keeps_trace_ = false;
  std::vector<std::string> trace_;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_SIMULATION_H_
