// Queues runs, plays workers, moves time.
#include "tests/schedule/scheduler_fixture.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/storage/waiting.h"

namespace ablate::schedule {

namespace wire = worker::v1;

void FaultyStore::CommitHeldBack() {
  while (!held_back_.empty()) {
    const auto commit = std::move(held_back_.front());
    held_back_.pop_front();
    answers_.push_back(commit());
  }
}

void FaultyStore::Release() {
  holds_back_ = false;
  CommitHeldBack();
  while (!answers_.empty()) {
    const std::function<void()> answer = std::move(answers_.front());
    answers_.pop_front();
    answer();
  }
}

absl::Status FaultyStore::Room() const {
  return full_ ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
}

void FaultyStore::Write(std::function<std::function<void()>()> commit) {
  held_back_.push_back(std::move(commit));
  if (!holds_back_) Release();
}

void FaultyStore::GrantAsync(std::vector<storage::NewLease> leases, Done<storage::Grants> done) {
  ++grants_;
  if (!Room().ok()) return done(Room());
  Write([this, leases = std::move(leases), done = std::move(done)] {
    return [done, granted = GrantAndWait(*target(), leases)] { done(granted); };
  });
}

void FaultyStore::ApplyAsync(std::string incarnation, std::vector<storage::LeaseEvent> events,
                             Done<std::vector<storage::Applied>> done) {
  if (!Room().ok()) return done(Room());
  Write([this, incarnation = std::move(incarnation), events = std::move(events),
         done = std::move(done)] {
    return [this, done, results = ApplyAndWait(*target(), incarnation, events)] {
      if (!results.ok() && std::exchange(fill_once_refused_, false)) full_ = true;
      done(results);
    };
  });
}

void FaultyStore::EndLeaseAsync(std::string lease, storage::LeaseEnding ending, DoneEnding done) {
  ++ends_;
  if (!Room().ok()) return done(Room());
  Write([this, lease = std::move(lease), ending = std::move(ending), done = std::move(done)] {
    return [done, status = EndLeaseAndWait(*target(), lease, ending)] { done(status); };
  });
}

void DrivenScheduler::Reset(std::unique_ptr<Scheduler> scheduler) {
  scheduler_ = std::move(scheduler);
  posted_.clear();
  scheduler_->SetPost([this](std::function<void()> work) {
    posted_.push_back(std::move(work));
    if (calls_ == 0) RunPosted();
  });
}

void DrivenScheduler::RunPosted() {
  ++calls_;
  while (!posted_.empty()) {
    const std::function<void()> work = std::move(posted_.front());
    posted_.pop_front();
    work();
  }
  --calls_;
}

std::vector<wire::Grant> SchedulerTest::Peer::grants() const {
  std::vector<wire::Grant> grants;
  for (const wire::ToWorker& message : stream->received) {
    if (message.has_grant()) grants.push_back(message.grant());
  }
  return grants;
}

std::vector<wire::HeldLeaseDecision> SchedulerTest::Peer::decisions() const {
  std::vector<wire::HeldLeaseDecision> decisions;
  for (const wire::ToWorker& message : stream->received) {
    if (message.has_decision()) decisions.push_back(message.decision());
  }
  return decisions;
}

std::vector<std::string> SchedulerTest::Peer::cancels() const {
  std::vector<std::string> cancels;
  for (const wire::ToWorker& message : stream->received) {
    if (message.has_cancel()) cancels.push_back(message.cancel().lease());
  }
  return cancels;
}

uint64_t SchedulerTest::Peer::acked(const std::string& lease) const {
  uint64_t acked = 0;
  for (const wire::ToWorker& message : stream->received) {
    if (message.has_ack() && message.ack().lease() == lease) {
      acked = std::max<uint64_t>(acked, message.ack().seq());
    }
  }
  return acked;
}

bool SchedulerTest::Peer::drained() const {
  return std::any_of(stream->received.begin(), stream->received.end(),
                     [](const wire::ToWorker& message) { return message.has_drain(); });
}

SchedulerTest::SchedulerTest() : store_(nullptr) {
  storage::StoreOptions options;
  options.now = [] { return storage::Micros{1}; };
  absl::StatusOr<std::unique_ptr<storage::Store>> store = storage::Store::Open(options);
  EXPECT_TRUE(store.ok()) << store.status();
  disk_ = *std::move(store);
  store_.SetTarget(disk_.get());
  Restart();
}

void SchedulerTest::Restart() { Restart(SchedulerOptions()); }

void SchedulerTest::Restart(SchedulerOptions options) {
  scheduler_.Reset(std::make_unique<Scheduler>(&store_, &clock_, std::move(options),
                                               [this] { return absl::StrCat("l", ++leases_); }));
  EXPECT_TRUE(scheduler_->Start().ok());
}

ablate::v1::RunSpec RecallSpec(uint32_t seed, uint32_t steps) {
  ablate::v1::RunSpec run;
  run.set_seed(seed);
  run.mutable_spec()->mutable_task()->mutable_legacy_recall();
  run.mutable_spec()->mutable_training()->set_steps(steps);
  return run;
}

std::string SchedulerTest::Queue(const std::string& name, uint32_t runs, uint32_t steps,
                                 uint32_t numerics_version, const std::string& trainer) {
  storage::NewExperiment experiment;
  experiment.name = name;
  experiment.request_id = name;
  experiment.owner = owner_;
  experiment.max_failed = max_failed_;
  for (uint32_t i = 0; i < runs; ++i) {
    storage::NewRun run;
    run.fingerprint = absl::StrCat(name, "-", i);
    run.trajectory = run.fingerprint;
    run.steps = steps;
    run.numerics_version = numerics_version;
    run.device_kind = device_of_runs_;
    run.trainer = trainer;
    run.shape = name;
    run.lanes = lanes_of_runs_;
    run.whole_seconds = whole_seconds_of_runs_;
    run.spec = RecallSpec(run.seed, steps).SerializeAsString();
    experiment.cells.push_back({run.fingerprint, {}, i, run.fingerprint});
    experiment.runs.push_back(std::move(run));
  }
  const auto created = disk_->CreateExperiment(experiment);
  EXPECT_TRUE(created.ok()) << created.status();
  return created->id;
}

wire::FromWorker SchedulerTest::Hello(const std::string& name, const std::string& incarnation,
                                      uint32_t lanes) {
  wire::FromWorker message;
  wire::Hello& hello = *message.mutable_hello();
  hello.set_worker(name);
  hello.set_incarnation(incarnation);
  hello.set_device("cpu in a test");
  hello.set_device_kind("cpu");
  hello.set_lanes(lanes);
  hello.set_build("test");
  hello.add_trainers()->set_name("torch");
  hello.set_numerics_version(engine::kNumericsVersion);
  hello.set_config_version(engine::kConfigVersion);
  return message;
}

wire::FromWorker SchedulerTest::Holding(wire::FromWorker hello, const std::string& lease,
                                        uint64_t first_unacked) {
  wire::HeldLease& held = *hello.mutable_hello()->add_held();
  held.set_lease(lease);
  held.set_first_unacked(first_unacked);
  return hello;
}

SchedulerTest::Peer SchedulerTest::Open() {
  Peer peer;
  peer.stream = std::make_shared<RecordingStream>();
  peer.session = scheduler_->Open(peer.stream);
  return peer;
}

SchedulerTest::Peer SchedulerTest::Attach(const wire::FromWorker& hello) {
  Peer peer = Open();
  Send(peer, hello);
  return peer;
}

SchedulerTest::Peer SchedulerTest::Attach(const std::string& name, const std::string& incarnation,
                                          uint32_t lanes) {
  return Attach(Hello(name, incarnation, lanes));
}

SchedulerTest::Peer SchedulerTest::TrainingWorker() {
  Pass(absl::Seconds(60));
  Queue("a", 2);
  Peer peer = Attach();
  SendStarted(peer, peer.grants().at(0), 1);
  return peer;
}

void SchedulerTest::Send(const Peer& peer, const wire::FromWorker& message) {
  scheduler_->Receive(peer.session, message);
}

wire::FromWorker SchedulerTest::EventOf(const wire::Grant& grant, uint64_t seq) {
  wire::FromWorker message;
  message.mutable_event()->set_lease(grant.lease());
  message.mutable_event()->set_seq(seq);
  return message;
}

void SchedulerTest::SendStarted(const Peer& peer, const wire::Grant& grant, uint64_t seq) {
  wire::FromWorker message = EventOf(grant, seq);
  message.mutable_event()->mutable_started();
  Send(peer, message);
}

void SchedulerTest::SendPoints(const Peer& peer, const wire::Grant& grant, uint64_t seq,
                               uint32_t step) {
  wire::FromWorker message = EventOf(grant, seq);
  wire::Points& points = *message.mutable_event()->mutable_points();
  points.set_step(step);
  points.set_busy_us(1000);
  wire::Column& column = *points.add_columns();
  column.set_key("train/loss");
  column.add_steps(step - 1);
  column.add_values(1.0 / step);
  Send(peer, message);
}

void SchedulerTest::SendResumeState(const Peer& peer, const wire::Grant& grant, uint64_t seq,
                                    const std::string& blob) {
  wire::FromWorker message = EventOf(grant, seq);
  message.mutable_event()->mutable_resume_state()->set_step(1);
  message.mutable_event()->mutable_resume_state()->set_blob(blob);
  Send(peer, message);
}

void SchedulerTest::SendFinished(const Peer& peer, const wire::Grant& grant, uint64_t seq,
                                 uint32_t step) {
  wire::FromWorker message = EventOf(grant, seq);
  message.mutable_event()->mutable_finished()->set_step(step);
  Send(peer, message);
}

void SchedulerTest::SendFailed(const Peer& peer, const wire::Grant& grant, uint64_t seq) {
  wire::FromWorker message = EventOf(grant, seq);
  message.mutable_event()->mutable_failed()->set_message("exit code 1");
  message.mutable_event()->mutable_failed()->set_is_final(true);
  Send(peer, message);
}

void SchedulerTest::SendHeartbeat(const Peer& peer) {
  wire::FromWorker message;
  message.mutable_heartbeat();
  Send(peer, message);
}

void SchedulerTest::SendProgress(const Peer& peer, const wire::Grant& grant, absl::Duration since) {
  wire::FromWorker message;
  wire::LeaseProgress& lease = *message.mutable_heartbeat()->add_leases();
  lease.set_lease(grant.lease());
  lease.set_since_progress_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(since)));
  Send(peer, message);
}

void SchedulerTest::Pass(absl::Duration time) { PassWithHeartbeats(time, {}); }

void SchedulerTest::PassWithHeartbeats(absl::Duration time, const std::vector<Peer>& peers) {
  for (absl::Duration passed; passed < time; passed += absl::Seconds(1)) {
    clock_.Advance(absl::Seconds(1));
    for (const Peer& peer : peers) SendHeartbeat(peer);
    scheduler_->Tick();
  }
}

storage::RunRecord SchedulerTest::Run(const std::string& name) {
  const auto run = disk_->GetRun(name);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : storage::RunRecord();
}

std::vector<std::string> SchedulerTest::HistoryOf(const std::string& name) {
  const auto events = disk_->RunEvents(name);
  EXPECT_TRUE(events.ok()) << events.status();
  std::vector<std::string> kinds;
  for (const storage::RunEventRecord& event : *events) kinds.push_back(event.kind);
  return kinds;
}

}  // namespace ablate::schedule
