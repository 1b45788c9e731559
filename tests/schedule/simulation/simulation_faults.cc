// Faults: processes, streams, disks, lanes, backups.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/schedule/simulation/simulation.h"

namespace ablate::simulation {

// Messages stop meanwhile, so that leases expire.
void Simulation::PassLongTime() {
  Trace("long silence");
  for (uint32_t left = random_.Between(3, 25); left > 0; --left) Tick(absl::Seconds(4));
}

void Simulation::BreakLink() {
  if (links_.empty()) return;
  Link& link = *links_[random_.Below(static_cast<uint32_t>(links_.size()))];
  if (link.cut) return;
  Trace(absl::StrCat("session ", link.session, " breaks"));
  link.Break(&random_);
}

// The worker attaches again while the server still reads the old stream.
void Simulation::AbandonLink() {
  Slot& slot = AnySlot();
  if (slot.process == nullptr || slot.link == nullptr) return;
  Trace(absl::StrCat(slot.name, " abandons session ", slot.link->session));
  slot.link->cut = true;
  slot.link->worker_side = false;
  slot.link->down.clear();
  slot.link = nullptr;
  slot.process->Disconnected();
  slot.detached_at = clock_.Now();
  ConnectSlot(&slot);
}

void Simulation::KillWorker() {
  Slot& slot = AnySlot();
  if (slot.process != nullptr) EndProcess(&slot, /*by_itself=*/random_.Chance(30));
}

void Simulation::HangWorker() {
  Slot& slot = AnySlot();
  slot.hangs = true;
  Trace(absl::StrCat(slot.name, " hangs"));
}

void Simulation::StickLane() {
  Slot& slot = AnySlot();
  if (slot.process == nullptr) return;
  Trace(absl::StrCat("a lane of ", slot.name, " hangs"));
  slot.process->Stick();
}

// As on SIGTERM.
void Simulation::LeaveWorker() {
  Slot& slot = AnySlot();
  if (slot.process == nullptr || slot.hangs) return;
  Trace(absl::StrCat(slot.name, " leaves"));
  slot.process->Drain();
  SendOutgoing(&slot);
  if (slot.process->finished()) EndProcess(&slot, /*by_itself=*/false);
}

void Simulation::KillServer() {
  if (!server_.up()) return;
  Trace("server is killed");
  server_.Kill();
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->server_side) link->LoseServer(&random_);
  }
}

void Simulation::DrainServer() {
  if (!server_.up() || server_.drained()) return;
  Trace("server drains");
  server_.Drain();
}

void Simulation::MakeBackup() {
  Trace("backup");
  backup_ = Backup{server_.Backup(), promises_.promises(), cancelled_, runs_};
}

void Simulation::RestoreBackup() {
  if (!backup_.has_value()) return;
  KillServer();
  Trace("backup is restored");
  server_.Restore(backup_->image);
  promises_.Restore(backup_->promises);
  cancelled_ = backup_->cancelled;
  runs_ = backup_->runs;
}

void Simulation::CancelExperiment() {
  if (!server_.up()) return;
  const auto cancelled = server_.delayed().CancelExperiment(cancellable_);
  if (!cancelled.ok()) return;
  Trace("cancel");
  for (const std::string& name : runs_) {
    const auto run = server_.disk().GetRun(name);
    if (run.ok() && run->state == storage::RunState::kCancelled) cancelled_[name] = run->step;
  }
  server_.scheduler().Withdraw(cancelled->withdrawals);
}

void Simulation::FillDisk() {
  Trace("the disk is full");
  server_.delayed().SetFull(true);
}

}  // namespace ablate::simulation
