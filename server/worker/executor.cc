// Runs the loop of one run: advance, report, save, until it ends or must stop.
#include "server/worker/executor.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/config/estimate.h"
#include "server/worker/point_buffer.h"

namespace ablate::worker {
namespace {

constexpr absl::Duration kCreditPoll = absl::Milliseconds(20);

// Returns true for the engine's errors; a call to the server has the same code, but not the words.
bool IsOutOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && absl::StrContains(status.message(), "out of memory");
}

// Computes how many steps the next Advance should make.
class StepPacer {
 public:
  explicit StepPacer(absl::Duration target) : target_(target) {}
  uint32_t steps() const { return steps_; }
  // Records that `made` steps took `elapsed`. Grows by at most a factor of two, because the first
  // steps aren't representative.
  void Observe(uint32_t made, absl::Duration elapsed) {
    if (made == 0) return;
    const double fitting =
        absl::FDivDuration(target_, std::max(elapsed, absl::Nanoseconds(1))) * made;
    steps_ = static_cast<uint32_t>(std::clamp(fitting, 1.0, 2.0 * steps_));
    steps_ = std::min(steps_, kMaxSteps);
  }

 private:
  static constexpr uint32_t kMaxSteps = 1 << 20;
  const absl::Duration target_;
  uint32_t steps_ = 1;
};

// Removes invalid characters from a message, because an event that can't be parsed would be resent
// forever.
std::string Transportable(std::string message) {
  v1::Failed sent, arrived;
  sent.set_message(message);
  if (arrived.ParseFromString(sent.SerializeAsString())) return message;
  for (char& c : message) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return message;
}

// One run on one lane, from Started to its last event.
class Training {
 public:
  Training(const ExecutorOptions& options, const v1::Grant& grant, RunControl& control,
           MemoryGate* gate, BlobChannel* blobs, EventSink* events)
      : options_(options),
        grant_(grant),
        control_(control),
        events_(events),
        gate_(*gate),
        share_(gate),
        outbox_(grant.lease(), options.max_hold, blobs, events, &control),
        pacer_(options.advance_time),
        began_(MonotonicNow()),
        delay_at_begin_(RunQueueDelay()),
        step_(grant.run().resume_step()),
        saved_step_(step_) {}

  // Returns CANCELLED if abandoned. Any other error is the run's, or UNAVAILABLE if the device is
  // lost. Frees the device.
  absl::Status Run(RunSetup& setup) {
    v1::Event started;
    started.mutable_started();
    outbox_.Post(std::move(started));
    control_.Progressed(step_);
    ASSIGN_OR_RETURN(const auto config, setup.Read(grant_, control_));
    const double bytes = gate_.checks() ? spec::DeviceBytes(config) : 0;
    while (true) {
      if (!share_.Enter(bytes, control_)) {
        return control_.abandoned() ? absl::CancelledError("withdrawn") : Release();
      }
      absl::Status status = Train(setup, config);
      const bool out_of_memory = gate_.checks() && IsOutOfMemory(status);
      const absl::Status kept = out_of_memory ? KeepState() : absl::OkStatus();
      trainer_.reset();
      // Without its state it would continue from elsewhere.
      if (!kept.ok()) status = kept;
      if (out_of_memory && kept.ok() && share_.Retreat()) continue;
      share_.Leave();
      return out_of_memory && kept.ok() ? WithNeed(status, bytes) : status;
    }
  }

  // Returns true if the run has ended and its last event waits for blobs.
  bool needs_completion() const { return end_.has_value(); }

  void Complete() {
    const absl::Status ended = End(*std::exchange(end_, std::nullopt));
    if (!ended.ok() && !control_.abandoned()) ReportFailure(ended);
  }

  void ReportFailure(const absl::Status& status) {
    Flush();
    v1::Event failed;
    failed.mutable_failed()->set_message(Transportable(std::string(status.message())));
    // A blob that can't be published may be the cause.
    outbox_.Settle().IgnoreError();
    outbox_.Post(std::move(failed));
  }

 private:
  absl::Status Train(RunSetup& setup, const engine::RunConfig& config) {
    auto trainer = setup.Make(config, grant_, state_, control_);
    if (absl::IsAborted(trainer.status())) return Refuse(trainer.status());
    if (!trainer.ok()) return trainer.status();
    trainer_ = *std::move(trainer);
    state_ = std::string();  // it can be as large as the run
    saved_at_ = flushed_at_ = MonotonicNow();
    return Loop();
  }

  // Reports what was made before the memory was out, and keeps the state for the next attempt.
  absl::Status KeepState() {
    if (trainer_ == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(engine::RunProgress made, Advance(0));
    RETURN_IF_ERROR(Take(std::move(made)));
    ASSIGN_OR_RETURN(state_, trainer_->ExportState());
    return absl::OkStatus();
  }

  // Adds the run's memory to an error.
  absl::Status WithNeed(const absl::Status& status, double bytes) const {
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), "; the run needs about ", spec::BytesText(bytes),
                     ", and the GPU has ", spec::BytesText(static_cast<double>(gate_.total())),
                     " for all programs"));
  }

  absl::Status Loop() {
    while (true) {
      AwaitCredit();
      if (control_.abandoned()) return absl::CancelledError("withdrawn");
      if (control_.halted()) return Release();
      ASSIGN_OR_RETURN(engine::RunProgress progress, Advance(pacer_.steps()));
      const bool ended = progress.outcome != engine::Outcome::kTraining;
      absl::Status taken = Take(std::move(progress));
      if (!taken.ok() || ended) return taken;
    }
  }

  // Pauses training while too much is held back or unacknowledged. Sends everything first, because
  // only that can end the pause.
  void AwaitCredit() {
    const auto may_go_on = [&] { return events_->HasCredit(grant_.lease()) && !outbox_.full(); };
    if (may_go_on()) return;
    Flush();
    const ServerWait waiting(control_);
    while (!control_.halted() && !may_go_on()) control_.Pause(kCreditPoll);
  }

  absl::StatusOr<engine::RunProgress> Advance(uint32_t steps) {
    const absl::Duration begin = MonotonicNow();
    const auto elapsed = [&] { return MonotonicNow() - begin; };
    auto progress = trainer_->Advance(
        steps, [&] { return control_.halted() || elapsed() >= options_.advance_time; });
    if (!progress.ok()) return progress.status();
    const uint32_t made = progress->step - step_;
    pacer_.Observe(made, elapsed());
    step_ += made;
    tokens_ += progress->tokens;
    if (made > 0 || progress->evaluated > 0) control_.Progressed(step_);
    if (made > 0) share_.Settle();
    return progress;
  }

  // Reports the output of an Advance: points before checkpoints before the end.
  absl::Status Take(engine::RunProgress progress) {
    if (gate_.checks()) DropReported(&progress);
    points_.Add(progress.points);
    const bool ended = progress.outcome != engine::Outcome::kTraining;
    const bool first = !flushed_ && !points_.empty();
    const bool due = MonotonicNow() - flushed_at_ >= options_.flush_every;
    if (first || due || ended || !progress.checkpoints.empty()) Flush();
    for (engine::Checkpoint& checkpoint : progress.checkpoints) {
      RETURN_IF_ERROR(SaveCheckpoint(std::move(checkpoint)));
    }
    if (ended) return Finish(progress);
    if (step_ != saved_step_ && control_.TakeSave()) return SaveState();
    // Pending blobs may delay a state for a while, but consecutive checkpoints must not prevent it
    // forever.
    const absl::Duration age = MonotonicNow() - saved_at_;
    const absl::Duration hold = outbox_.publishing() ? options_.max_hold : absl::ZeroDuration();
    if (age < SaveInterval(options_.resume_every, SavingTook()) + hold) return outbox_.status();
    return SaveState();
  }

  // Removes what an earlier attempt has reported: the evaluation and the checkpoint of the step at
  // which it ran out of memory are made again.
  void DropReported(engine::RunProgress* progress) {
    std::erase_if(progress->points, [this](const engine::Point& point) {
      const auto [last, is_first] = reported_.try_emplace(point.key, point.step);
      const bool again = !is_first && point.step <= last->second;
      last->second = std::max(last->second, point.step);
      return again;
    });
    std::erase_if(progress->checkpoints, [this](const engine::Checkpoint& checkpoint) {
      const bool again = checkpoint_.has_value() && checkpoint.step <= *checkpoint_;
      checkpoint_ = std::max(checkpoint_.value_or(0), checkpoint.step);
      return again;
    });
  }

  void Flush() {
    if (points_.empty()) return;
    v1::Event event;
    const uint32_t lanes = std::clamp(grant_.run().spec().spec().training().threads(), 1u,
                                      std::max(options_.lanes, 1u));
    const absl::Duration busy = MonotonicNow() - began_ - control_.waited();
    *event.mutable_points() =
        points_.Take(step_, {lanes * busy, RunQueueDelay() - delay_at_begin_, tokens_});
    outbox_.Post(std::move(event));
    flushed_ = true;
    flushed_at_ = MonotonicNow();
  }

  absl::Status SaveCheckpoint(engine::Checkpoint checkpoint) {
    v1::Event event;
    event.mutable_checkpoint()->set_step(checkpoint.step);
    return outbox_.PostBlob(std::move(event), std::move(checkpoint.safetensors));
  }

  // Saves a resume state. It covers everything reported before it, so everything made so far is
  // reported first.
  absl::Status SaveState() {
    if (step_ == saved_step_) return outbox_.status();
    // Waits before the next state is created, because one large state is all the memory that a run
    // may use.
    RETURN_IF_ERROR(outbox_.AwaitRoom());
    Flush();
    saved_step_ = step_;
    saved_at_ = MonotonicNow();
    published_before_ = outbox_.publishing_time();
    ASSIGN_OR_RETURN(std::string state,
                     trainer_ != nullptr ? trainer_->ExportState() : std::move(state_));
    exporting_ = MonotonicNow() - saved_at_;
    v1::Event event;
    event.mutable_resume_state()->set_step(step_);
    return outbox_.PostBlob(std::move(event), std::move(state));
  }

  // Returns the time that the last state has cost: this lane's, and the background's since then.
  absl::Duration SavingTook() const {
    return exporting_ + outbox_.publishing_time() - published_before_;
  }

  absl::Status Finish(const engine::RunProgress& progress) {
    const bool diverged = progress.outcome == engine::Outcome::kDiverged;
    if (grant_.run().keep_state() && !diverged) {
      RETURN_IF_ERROR(SaveState());
    }
    v1::Event event;
    event.mutable_finished()->set_diverged(diverged);
    event.mutable_finished()->set_step(progress.step);
    RETURN_IF_ERROR(outbox_.AwaitRoom());
    if (!outbox_.publishing()) return End(std::move(event));
    // The lane needn't wait for the server before it starts another run.
    trainer_.reset();
    end_ = std::move(event);
    return absl::OkStatus();
  }

  absl::Status Release() {
    // One at a time, settled before the next is created.
    absl::Status saved = outbox_.Settle();
    if (saved.ok()) saved = SaveState();
    if (!saved.ok()) return saved;
    v1::Event event;
    event.mutable_released();
    return End(std::move(event));
  }

  // Releases the run, because a bad state isn't the run's fault.
  absl::Status Refuse(const absl::Status& why) {
    v1::Event event;
    event.mutable_released()->set_state_refused(Transportable(std::string(why.message())));
    return End(std::move(event));
  }

  // Sends the last event after everything posted before.
  absl::Status End(v1::Event event) {
    absl::Status settled = outbox_.Settle();
    if (settled.ok()) outbox_.Post(std::move(event));
    return settled;
  }

  const ExecutorOptions& options_;
  const v1::Grant& grant_;
  RunControl& control_;
  EventSink* const events_;
  MemoryGate& gate_;
  MemoryGate::Share share_;
  Outbox outbox_;
  StepPacer pacer_;
  PointBuffer points_;
  std::unique_ptr<engine::Trainer> trainer_;
  std::map<std::string, uint32_t> reported_;  // by metric, the last step
  std::optional<uint32_t> checkpoint_;        // the last one's step
  std::string state_;  // of the last attempt that ran out of memory; empty if there was none
  const absl::Duration began_;
  const absl::Duration delay_at_begin_;
  uint64_t tokens_ = 0;
  uint32_t step_;
  uint32_t saved_step_;
  bool flushed_ = false;
  std::optional<v1::Event> end_;  // set once the run has ended, while blobs are pending
  absl::Duration flushed_at_;
  absl::Duration saved_at_;
  absl::Duration exporting_;         // took this lane so long for the last state
  absl::Duration published_before_;  // the outbox's publishing time before the last state
};

}  // namespace

absl::Duration SaveInterval(absl::Duration every, absl::Duration cost) {
  constexpr double kShare = 0.02;
  constexpr absl::Duration kLongest = absl::Minutes(10);
  return std::max(every, std::min(cost / kShare, kLongest));
}

Executor::Executor(ExecutorOptions options, TrainerFactory make_trainer, MemoryActions memory,
                   BlobChannel* blobs, EventSink* events)
    : options_(options),
      blobs_(blobs),
      events_(events),
      setup_(std::move(make_trainer), blobs),
      gate_(std::move(memory)) {}

absl::Status Executor::Execute(const v1::Grant& grant, RunControl& control,
                               Completion* completion) {
  const auto training =
      std::make_shared<Training>(options_, grant, control, &gate_, blobs_, events_);
  absl::Status status = training->Run(setup_);
  if (absl::IsUnavailable(status)) return status;
  if (!status.ok() && !control.abandoned()) training->ReportFailure(status);
  if (training->needs_completion()) *completion = [training] { training->Complete(); };
  return absl::OkStatus();
}

}  // namespace ablate::worker
