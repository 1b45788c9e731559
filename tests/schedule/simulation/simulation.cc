// The schedule: possible actions, their frequencies, and invariants.
#include "tests/schedule/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "tests/schedule/simulation/checks.h"

namespace ablate::simulation {
namespace {

using storage::RunState;

constexpr int kMaxRounds = 400;
constexpr absl::Duration kRound = absl::Seconds(4);

}  // namespace

const std::vector<Simulation::Action>& Simulation::Actions() {
  static const std::vector<Action> actions = {
      {&Simulation::DeliverUp, 70, false},   {&Simulation::DeliverDown, 70, false},
      {&Simulation::Commit, 70, false},      {&Simulation::Answer, 70, false},
      {&Simulation::Train, 120, false},      {&Simulation::Connect, 30, false},
      {&Simulation::PassTime, 15, false},    {&Simulation::ReportExit, 10, false},
      {&Simulation::StartWorker, 20, false}, {&Simulation::StartServer, 20, false},
      {&Simulation::WakeWorker, 10, false},  {&Simulation::FreeDisk, 10, false},
      {&Simulation::Check, 5, false},        {&Simulation::Grow, 6, false},
      {&Simulation::PassLongTime, 3, true},  {&Simulation::BreakLink, 8, true},
      {&Simulation::AbandonLink, 5, true},   {&Simulation::KillWorker, 5, true},
      {&Simulation::HangWorker, 4, true},    {&Simulation::StickLane, 1, true},
      {&Simulation::LeaveWorker, 2, true},   {&Simulation::KillServer, 5, true},
      {&Simulation::DrainServer, 1, true},   {&Simulation::MakeBackup, 4, true},
      {&Simulation::RestoreBackup, 2, true}, {&Simulation::CancelExperiment, 1, true},
      {&Simulation::FillDisk, 2, true},      {&Simulation::AskToSave, 3, false},
  };
  return actions;
}

Simulation::Simulation(uint64_t seed, Mutation mutation)
    : random_(seed), server_(&clock_, mutation, &random_) {
  for (const Action& action : Actions()) {
    weights_.push_back(action.fault && random_.Chance(50) ? 0 : action.weight);
  }
  // Backups are only made in schedules that restore one.
  if (WeightOf(&Simulation::RestoreBackup) == 0) WeightOf(&Simulation::MakeBackup) = 0;
  server_.delayed().OnGrant(
      [this](const storage::NewLease& lease, const storage::GrantedRun& granted) {
        Fail(promises_.CheckGrant(lease, granted));
        Trace(absl::StrCat("grant of ", lease.run, " from step ", granted.resume_step));
      });
}

Simulation::~Simulation() = default;

uint32_t& Simulation::WeightOf(void (Simulation::*act)()) {
  size_t index = 0;
  while (Actions()[index].act != act) ++index;
  return weights_[index];
}

std::string Simulation::Run() {
  Submit("kept", 0, random_.Between(1, 3));
  Submit("cancellable", 3, random_.Between(1, 2));
  const uint32_t workers = random_.Between(1, 2);
  for (uint32_t i = 0; i < workers; ++i) {
    Slot slot;
    slot.name = absl::StrCat("worker-", i);
    slot.lanes = random_.Between(1, 2);
    slot.supervised = random_.Chance(70);
    slots_.push_back(std::move(slot));
    StartProcess(&slots_.back());
  }
  server_.Start();
  for (uint32_t left = random_.Between(100, 700); left > 0 && problem_.empty(); --left) Act();
  if (problem_.empty()) Heal();
  return problem_;
}

void Simulation::Submit(const char* name, uint32_t first_run, uint32_t runs) {
  storage::NewExperiment experiment;
  experiment.name = name;
  experiment.request_id = name;
  for (uint32_t i = first_run; i < first_run + runs; ++i) {
    storage::NewRun run = MakeRun(absl::StrCat("run-", i), absl::StrCat("growth-", i),
                                  random_.Between(6, 14), /*origin=*/"");
    experiment.cells.push_back({run.fingerprint, {}, i, run.fingerprint});
    experiment.runs.push_back(std::move(run));
  }
  const auto created = server_.disk().CreateExperiment(experiment);
  if (!created.ok()) {
    Fail(created.status().ToString());
    return;
  }
  for (const storage::CreatedCell& cell : created->cells) runs_.push_back(cell.run);
  cancellable_ = created->id;
}

storage::NewRun Simulation::MakeRun(const std::string& name, const std::string& growth,
                                    uint32_t steps, const std::string& origin) {
  v1::RunSpec spec;
  spec.mutable_spec()->mutable_task()->mutable_legacy_recall();
  spec.mutable_spec()->mutable_training()->set_steps(steps);
  storage::NewRun run;
  run.fingerprint = name;
  run.trajectory = name;
  run.growth = growth;
  run.steps = steps;
  run.device_kind = "cpu";
  run.trainer = "torch";
  run.shape = "shape";
  run.spec = spec.SerializeAsString();
  run.origin = origin;
  return run;
}

void Simulation::Act() {
  (this->*Actions()[random_.Weighted(weights_)].act)();
  DropDeadLinks();
}

// Ends the faults: starts what is down, and continues what hangs.
void Simulation::Heal() {
  Trace("peace");
  server_.delayed().SetFull(false);
  for (int round = 0; round < kMaxRounds && problem_.empty(); ++round) {
    if (server_.up() && server_.drained()) KillServer();
    StartServer();
    for (Slot& slot : slots_) {
      slot.hangs = false;
      if (slot.exit.has_value()) Report(&slot);
      if (slot.process == nullptr) StartProcess(&slot);
      ConnectSlot(&slot);
    }
    Settle();
    if (Unfinished().empty()) {
      CheckEnd();
      return;
    }
    Tick(kRound);
  }
  Fail(absl::StrCat("it does not end: ", Unfinished()));
}

// Delivers and trains until nothing is in progress.
void Simulation::Settle() {
  for (bool busy = true; busy && problem_.empty();) {
    busy = false;
    for (size_t i = 0; i < links_.size(); ++i) {
      const std::shared_ptr<Link> link = links_[i];
      for (; !link->up.empty() || (link->cut && link->server_side); busy = true) Up(link);
      for (; !link->down.empty() || (link->cut && link->worker_side); busy = true) Down(link);
    }
    for (; server_.delayed().waiting() > 0; busy = true) server_.delayed().Commit();
    for (; server_.posted() > 0; busy = true) server_.RunPosted();
    DropDeadLinks();
  }
  for (Slot& slot : slots_) {
    for (uint32_t i = 0; slot.process != nullptr && i < 4 * slot.lanes; ++i) {
      slot.process->Train(clock_.Now());
      SendOutgoing(&slot);
    }
  }
}

// Returns the remaining work; empty when all has ended.
std::string Simulation::Unfinished() {
  for (const std::string& name : runs_) {
    const auto run = server_.disk().GetRun(name);
    if (!run.ok()) return run.status().ToString();
    if (run->state == RunState::kQueued) return absl::StrCat("run ", name, " is queued");
    if (run->state == RunState::kLeased) return absl::StrCat("run ", name, " is leased");
  }
  for (const Slot& slot : slots_) {
    if (slot.process != nullptr && !slot.process->book().empty()) {
      return absl::StrCat(slot.name, " holds a lease");
    }
  }
  return "";
}

void Simulation::CheckAll() {
  Fail(CheckLeases(server_.disk()));
  for (const std::string& run : runs_) Fail(CheckRun(server_.disk(), histories_, run));
}

void Simulation::CheckEnd() {
  CheckAll();
  const absl::Status maintained = server_.disk().Maintain();
  if (!maintained.ok()) Fail(maintained.ToString());
  CheckAll();
  for (const std::string& name : runs_) {
    const auto run = server_.disk().GetRun(name);
    if (!run.ok()) continue;
    // Messages of a run after its cancel are acknowledged, too, without effect.
    const bool may_lack_its_end =
        run->state == RunState::kDone || run->state == RunState::kCancelled;
    if (!may_lack_its_end && promises_.promises().finished.count(name) > 0) {
      Fail(absl::StrCat("run ", name, " is not DONE although its end was acknowledged"));
    }
    const auto cancelled = cancelled_.find(name);
    if (run->state == RunState::kCancelled &&
        (cancelled == cancelled_.end() || cancelled->second != run->step)) {
      Fail(absl::StrCat("run ", name, " went on after it was cancelled, or was not"));
    }
    if (run->state == RunState::kFailed && run->failures < storage::kMaxFailuresWithoutProgress &&
        run->losses < storage::kMaxLossesWithoutProgress) {
      Fail(absl::StrCat("run ", name, " FAILED after ", run->failures, " failures and ",
                        run->losses, " losses"));
    }
  }
}

void Simulation::Fail(const std::string& problem) {
  if (problem_.empty() && !problem.empty()) {
    problem_ = problem;
    Trace(absl::StrCat("PROBLEM: ", problem));
  }
}

void Simulation::Trace(const std::string& line) {
  if (keeps_trace_) trace_.push_back(line);
}

}  // namespace ablate::simulation
