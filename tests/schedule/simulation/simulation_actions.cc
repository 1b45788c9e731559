// Actions without faults: messages, commits, steps, time.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/schedule/simulation/checks.h"
#include "tests/schedule/simulation/simulation.h"

namespace ablate::simulation {

namespace wire = worker::v1;

void Simulation::DeliverUp() {
  for (uint32_t left = random_.Between(1, 4); left > 0; --left) {
    if (const std::shared_ptr<Link> link = AnyBusyLink(/*up=*/true)) Up(link);
  }
}

void Simulation::DeliverDown() {
  for (uint32_t left = random_.Between(1, 4); left > 0; --left) {
    if (const std::shared_ptr<Link> link = AnyBusyLink(/*up=*/false)) Down(link);
  }
}

void Simulation::Commit() {
  if (server_.delayed().waiting() == 0) return;
  Trace("commit");
  server_.delayed().Commit();
}

void Simulation::Answer() {
  if (server_.posted() == 0) return;
  Trace("answer of the store");
  server_.RunPosted();
}

void Simulation::Train() {
  Slot& slot = AnySlot();
  if (slot.process == nullptr || slot.hangs) return;
  slot.process->Train(clock_.Now());
  SendOutgoing(&slot);
}

void Simulation::Connect() { ConnectSlot(&AnySlot()); }

void Simulation::PassTime() { Tick(absl::Seconds(random_.Between(1, 4))); }

void Simulation::ReportExit() {
  Slot& slot = AnySlot();
  if (slot.exit.has_value()) Report(&slot);
}

void Simulation::StartWorker() {
  Slot& slot = AnySlot();
  if (slot.process == nullptr && !slot.exit.has_value()) StartProcess(&slot);
}

void Simulation::StartServer() {
  if (server_.up()) return;
  Trace("server starts");
  server_.Start();
}

void Simulation::WakeWorker() {
  Slot& slot = AnySlot();
  if (!slot.hangs) return;
  slot.hangs = false;
  Trace(absl::StrCat(slot.name, " goes on"));
}

void Simulation::FreeDisk() { server_.delayed().SetFull(false); }

void Simulation::Check() { CheckAll(); }

// Submits a longer run of a growth, which may be extended again later.
void Simulation::Grow() {
  const std::string growth = absl::StrCat("growth-", random_.Below(4));
  const storage::NewRun any = MakeRun("any", growth, UINT32_MAX, "");
  const auto known = server_.disk().LookUpRuns({any});
  if (!known.ok() || known->front().shorter.empty()) return;
  const storage::ShorterRun& shorter = known->front().shorter.front();
  const uint32_t steps = shorter.steps + random_.Between(1, 6);
  const std::string name = absl::StrCat(growth, "-of-", steps);
  if (std::find(runs_.begin(), runs_.end(), name) != runs_.end()) return;
  Trace(absl::StrCat(name, " grows from ", shorter.run));
  storage::NewExperiment experiment;
  experiment.name = "grown";
  experiment.request_id = name;
  experiment.cells.push_back({name, {}, 0, name});
  experiment.runs.push_back(MakeRun(name, growth, steps, shorter.run));
  const auto created = server_.disk().CreateExperiment(experiment);
  if (!created.ok()) {
    Fail(created.status().ToString());
    return;
  }
  runs_.push_back(name);
}

// Asks for the states of all leased runs, as before a cancel.
void Simulation::AskToSave() {
  if (!server_.up()) return;
  const auto leases = server_.disk().ListLeases();
  if (!leases.ok()) return;
  Trace("states are asked for");
  std::vector<storage::Withdrawal> asked;
  for (const storage::LeaseRecord& lease : *leases) {
    asked.push_back({lease.lease, lease.holder.worker});
  }
  server_.scheduler().Save(asked, [] {});
}

std::shared_ptr<Link> Simulation::AnyBusyLink(bool up) {
  std::vector<std::shared_ptr<Link>> busy;
  for (const std::shared_ptr<Link>& link : links_) {
    const bool has_message = up ? !link->up.empty() : !link->down.empty();
    const bool has_end = link->cut && (up ? link->server_side : link->worker_side);
    const bool read = up ? server_.up() : !slots_[link->worker].hangs;
    if (read && (has_message || has_end)) busy.push_back(link);
  }
  if (busy.empty()) return nullptr;
  return busy[random_.Below(static_cast<uint32_t>(busy.size()))];
}

void Simulation::Up(const std::shared_ptr<Link>& link) {
  if (!server_.up() || !link->server_side) return;
  if (!link->up.empty()) {
    const wire::FromWorker message = std::move(link->up.front());
    link->up.pop_front();
    if (keeps_trace_ && !message.has_heartbeat()) {
      Trace(absl::StrCat("server gets ", message.ShortDebugString()));
    }
    server_.scheduler().Receive(link->session, message);
  } else if (link->cut) {
    Trace(absl::StrCat("server notices the end of session ", link->session));
    link->server_side = false;
    server_.scheduler().Closed(link->session);
  }
}

void Simulation::Down(const std::shared_ptr<Link>& link) {
  Slot& slot = slots_[link->worker];
  const bool current = slot.link == link && slot.process != nullptr;
  if (current && slot.hangs) return;
  if (!link->down.empty()) {
    const wire::ToWorker message = std::move(link->down.front());
    link->down.pop_front();
    if (!current) return;
    if (keeps_trace_) Trace(absl::StrCat(slot.name, " gets ", message.ShortDebugString()));
    slot.process->Receive(message, clock_.Now());
    SendOutgoing(&slot);
  } else if (link->cut) {
    link->worker_side = false;
    if (!current) return;
    Trace(absl::StrCat(slot.name, " notices the end of session ", link->session));
    slot.process->Disconnected();
    slot.link = nullptr;
    slot.detached_at = clock_.Now();
  }
  if (slot.process != nullptr && slot.process->finished()) {
    EndProcess(&slot, /*by_itself=*/false);
  }
}

void Simulation::ConnectSlot(Slot* slot) {
  if (slot->process == nullptr || slot->link != nullptr || slot->hangs || !server_.up()) return;
  auto link = std::make_shared<Link>();
  link->worker = static_cast<size_t>(slot - slots_.data());
  link->session = server_.scheduler().Open(std::make_shared<LinkStream>(
      link, &promises_,
      [this](const wire::Grant& grant) { Fail(CheckHandedOut(server_.disk(), grant)); }));
  slot->link = link;
  links_.push_back(link);
  Trace(absl::StrCat(slot->name, " opens session ", link->session));
  link->up.push_back(slot->process->Hello());
}

void Simulation::SendOutgoing(Slot* slot) {
  for (wire::FromWorker& message : slot->process->TakeOutgoing()) {
    if (message.has_event()) {
      promises_.Sent(message.event(), slot->process->environment().said);
    }
    if (slot->link != nullptr && !slot->link->cut) slot->link->up.push_back(std::move(message));
  }
}

// Heartbeats come as often as the clock moves.
void Simulation::Tick(absl::Duration by) {
  clock_.Advance(by);
  for (Slot& slot : slots_) {
    if (slot.process == nullptr || slot.hangs) continue;
    if (slot.link == nullptr && clock_.Now() - slot.detached_at > absl::Minutes(1)) {
      slot.process->DropAll();
    }
    if (slot.link != nullptr && !slot.link->cut) {
      slot.link->up.push_back(slot.process->Heartbeat(clock_.Now()));
    }
  }
  if (server_.up()) server_.scheduler().Tick();
}

void Simulation::StartProcess(Slot* slot) {
  // As after an upgrade, or on another machine; some don't report it.
  Environment environment{random_.Chance(20) ? "new" : "old", ""};
  if (random_.Chance(80)) environment.said = environment.real;
  slot->process =
      std::make_unique<WorkerProcess>(slot->name, absl::StrCat(slot->name, "#", ++slot->processes),
                                      environment, slot->lanes, &histories_, &random_);
  slot->detached_at = clock_.Now();
  slot->hangs = false;
  Trace(absl::StrCat(slot->name, " starts as ", slot->process->incarnation()));
}

void Simulation::EndProcess(Slot* slot, bool by_itself) {
  Trace(absl::StrCat(slot->process->incarnation(), " ends", by_itself ? " by itself" : ""));
  slot->process = nullptr;
  if (slot->link != nullptr) {
    slot->link->Break(&random_);
    slot->link->worker_side = false;
    slot->link->down.clear();
    slot->link = nullptr;
  }
  if (slot->supervised) slot->exit = schedule::WorkerExit{slot->name, by_itself, "last words"};
}

// A server that is down isn't told of an end.
void Simulation::Report(Slot* slot) {
  if (server_.up()) {
    Trace(absl::StrCat("end of ", slot->name, " is reported"));
    server_.scheduler().Exited(*slot->exit);
  }
  slot->exit.reset();
}

Simulation::Slot& Simulation::AnySlot() {
  return slots_[random_.Below(static_cast<uint32_t>(slots_.size()))];
}

void Simulation::DropDeadLinks() {
  links_.erase(std::remove_if(links_.begin(), links_.end(),
                              [](const std::shared_ptr<Link>& link) {
                                return !link->server_side && !link->worker_side;
                              }),
               links_.end());
}

}  // namespace ablate::simulation
