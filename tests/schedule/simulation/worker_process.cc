// Trains by recording values, and implements the worker's half of the protocol.
#include "tests/schedule/simulation/worker_process.h"

#include <algorithm>
#include <utility>

#include "server/engine/trainer.h"

namespace ablate::simulation {

namespace v1 = worker::v1;

WorkerProcess::WorkerProcess(std::string name, std::string incarnation, Environment environment,
                             uint32_t lanes, Histories* histories, Random* random)
    : name_(std::move(name)),
      incarnation_(std::move(incarnation)),
      environment_(std::move(environment)),
      histories_(histories),
      random_(random),
      lanes_(lanes) {}

v1::FromWorker WorkerProcess::Hello() const {
  v1::FromWorker message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_worker(name_);
  hello.set_incarnation(incarnation_);
  hello.set_device("simulated");
  hello.set_device_kind("cpu");
  hello.set_lanes(static_cast<uint32_t>(lanes_.size()));
  v1::TrainerInfo* trainer = hello.add_trainers();
  trainer->set_name("torch");
  trainer->set_environment(environment_.said);
  hello.set_numerics_version(engine::kNumericsVersion);
  hello.set_config_version(engine::kConfigVersion);
  for (v1::HeldLease& lease : book_.Held()) *hello.add_held() = std::move(lease);
  return message;
}

v1::FromWorker WorkerProcess::Heartbeat(absl::Duration now) const {
  v1::FromWorker message;
  message.mutable_heartbeat();
  for (const std::optional<Job>& job : lanes_) {
    if (!job.has_value()) continue;
    v1::LeaseProgress& lease = *message.mutable_heartbeat()->add_leases();
    lease.set_lease(job->lease);
    lease.set_step(job->step);
    lease.set_since_progress_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(now - job->progress_at)));
  }
  return message;
}

void WorkerProcess::DropAll() {
  for (const std::string& lease : book_.DropAll()) Stop(lease);
}

void WorkerProcess::Receive(const v1::ToWorker& message, absl::Duration now) {
  worker::Instructions instructions = book_.Receive(message);
  if (!instructions.stop.empty()) Stop(instructions.stop);
  for (std::optional<Job>& lane : lanes_) {
    const bool is_it =
        lane.has_value() && lane->lease == instructions.save && !lane->stuck && !lane->ended;
    if (is_it) SaveState(&*lane);
  }
  for (v1::FromWorker& event : instructions.send) outgoing_.push_back(std::move(event));
  if (instructions.start.has_value()) {
    Job job;
    job.lease = instructions.start->lease();
    job.grant = instructions.start->run();
    if (draining_) {
      v1::Event event = EventOf(job);
      event.mutable_released();
      Report(std::move(event));
    } else {
      waiting_.push_back(std::move(job));
    }
  }
  FillLanes(now);
  if (instructions.drain) Drain();
}

void WorkerProcess::Train(absl::Duration now) {
  const size_t first = random_->Below(static_cast<uint32_t>(lanes_.size()));
  for (size_t i = 0; i < lanes_.size(); ++i) {
    std::optional<Job>& job = lanes_[(first + i) % lanes_.size()];
    if (!job.has_value() || job->stuck || !book_.HasCredit(job->lease)) continue;
    job->progress_at = now;
    if (!Step(&*job)) job.reset();
    FillLanes(now);
    return;
  }
}

void WorkerProcess::Stick() {
  std::optional<Job>& job = lanes_[random_->Below(static_cast<uint32_t>(lanes_.size()))];
  if (job.has_value()) job->stuck = true;
}

void WorkerProcess::Drain() {
  if (std::exchange(draining_, true)) return;
  for (std::optional<Job>& lane : lanes_) {
    if (!lane.has_value()) continue;
    if (!lane->stuck) {
      Flush(&*lane);
      SaveState(&*lane);
    }
    waiting_.push_back(*std::move(lane));
    lane.reset();
  }
  for (const Job& job : waiting_) {
    v1::Event event = EventOf(job);
    event.mutable_released();
    Report(std::move(event));
  }
  waiting_.clear();
}

std::vector<v1::FromWorker> WorkerProcess::TakeOutgoing() { return std::exchange(outgoing_, {}); }

void WorkerProcess::Stop(const std::string& lease) {
  const auto is_it = [&](const Job& job) { return job.lease == lease; };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), is_it), waiting_.end());
  for (std::optional<Job>& lane : lanes_) {
    if (lane.has_value() && is_it(*lane)) lane.reset();
  }
}

void WorkerProcess::FillLanes(absl::Duration now) {
  for (std::optional<Job>& lane : lanes_) {
    while (!lane.has_value() && !waiting_.empty()) {
      lane = std::move(waiting_.front());
      waiting_.pop_front();
      lane->progress_at = now;
      if (!Begin(&*lane)) lane.reset();
    }
  }
}

bool WorkerProcess::Begin(Job* job) {
  v1::Event event = EventOf(*job);
  event.mutable_started();
  Report(std::move(event));
  TrainingState from{job->grant.run(), environment_.real, {}, 0};
  if (!job->grant.resume_blob().empty()) from = *histories_->FindBlob(job->grant.resume_blob());
  if (from.environment != environment_.real) {
    v1::Event refusal = EventOf(*job);
    refusal.mutable_released()->set_state_refused("made elsewhere");
    Report(std::move(refusal));
    return false;
  }
  job->step = from.step;
  job->ended = from.ended && from.step == job->grant.spec().spec().training().steps();
  from.run = job->grant.run();  // it may be a shorter one's
  job->segment = histories_->Begin(from);
  return true;
}

bool WorkerProcess::Step(Job* job) {
  if (random_->Below(400) == 0) {
    v1::Event event = EventOf(*job);
    event.mutable_failed()->set_message("the simulated run failed");
    Report(std::move(event));
    return false;
  }
  if (job->step == job->grant.spec().spec().training().steps()) {
    Finish(job);
    return false;
  }
  if (job->step % kEvaluationEvery == 0) AddPoint(job, "eval/loss", job->step);
  if (job->step == kCheckpointStep) SaveCheckpoint(job);
  AddPoint(job, "train/loss", job->step);
  ++job->step;
  if (random_->Chance(50)) Flush(job);
  if (random_->Chance(20)) SaveState(job);
  return true;
}

void WorkerProcess::Finish(Job* job) {
  if (!job->ended) {
    AddPoint(job, "eval/loss", job->step);
    SaveCheckpoint(job);
    if (job->grant.keep_state()) SaveState(job, /*ended=*/true);
  }
  v1::Event event = EventOf(*job);
  event.mutable_finished()->set_step(job->step);
  Report(std::move(event));
}

void WorkerProcess::AddPoint(Job* job, const char* key, uint32_t step) {
  v1::Column* column = nullptr;
  for (v1::Column& known : *job->points.mutable_columns()) {
    if (known.key() == key) column = &known;
  }
  if (column == nullptr) {
    column = job->points.add_columns();
    column->set_key(key);
  }
  column->add_steps(step);
  column->add_values(Histories::Value(job->segment, step));
}

void WorkerProcess::Flush(Job* job) {
  if (job->points.columns_size() == 0) return;
  v1::Event event = EventOf(*job);
  *event.mutable_points() = std::exchange(job->points, {});
  event.mutable_points()->set_step(job->step);
  event.mutable_points()->set_busy_us(1000);
  Report(std::move(event));
}

void WorkerProcess::SaveState(Job* job, bool ended) {
  Flush(job);
  v1::Event event = EventOf(*job);
  event.mutable_resume_state()->set_step(job->step);
  event.mutable_resume_state()->set_blob(histories_->Publish(job->segment, job->step, ended));
  event.mutable_resume_state()->set_bytes(1);
  Report(std::move(event));
}

void WorkerProcess::SaveCheckpoint(Job* job) {
  Flush(job);
  v1::Event event = EventOf(*job);
  event.mutable_checkpoint()->set_step(job->step);
  event.mutable_checkpoint()->set_blob(histories_->Publish(job->segment, job->step));
  event.mutable_checkpoint()->set_bytes(1);
  Report(std::move(event));
}

v1::Event WorkerProcess::EventOf(const Job& job) const {
  v1::Event event;
  event.set_lease(job.lease);
  return event;
}

void WorkerProcess::Report(v1::Event event) {
  for (v1::FromWorker& message : book_.Report(std::move(event))) {
    outgoing_.push_back(std::move(message));
  }
}

}  // namespace ablate::simulation
