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
#include "server/config/program.h"
#include "server/worker/program_run.h"
#include "server/worker/run_report.h"

namespace ablate::worker {
namespace {

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

// `threads` as the run asks for them.
ReportOptions ReportOptionsOf(const ExecutorOptions& options, uint32_t threads) {
  const uint32_t lanes = std::clamp(threads, 1u, std::max(options.lanes, 1u));
  return {options.flush_every, options.max_hold, lanes};
}

// One run on one lane, from Started to its last event.
class Training {
 public:
  Training(const ExecutorOptions& options, const v1::Grant& grant, RunControl& control,
           MemoryGate* gate, BlobChannel* blobs, EventSink* events)
      : options_(options),
        grant_(grant),
        control_(control),
        gate_(*gate),
        share_(gate),
        report_(ReportOptionsOf(options, grant.run().spec().spec().training().threads()), grant,
                &control, blobs, events),
        pacer_(options.advance_time),
        saved_step_(report_.step()) {}

  // Returns CANCELLED if abandoned. Any other error is the run's, or UNAVAILABLE if the device is
  // lost. Frees the device.
  absl::Status Run(RunSetup& setup) {
    report_.Started();
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

  RunReport& report() { return report_; }

 private:
  absl::Status Train(RunSetup& setup, const engine::RunConfig& config) {
    auto trainer = setup.Make(config, grant_, state_, control_);
    if (absl::IsAborted(trainer.status())) return Refuse(trainer.status());
    if (!trainer.ok()) return trainer.status();
    trainer_ = *std::move(trainer);
    state_ = std::string();  // it can be as large as the run
    saved_at_ = MonotonicNow();
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
      report_.AwaitCredit();
      if (control_.abandoned()) return absl::CancelledError("withdrawn");
      if (control_.halted()) return Release();
      ASSIGN_OR_RETURN(engine::RunProgress progress, Advance(pacer_.steps()));
      const bool ended = progress.outcome != engine::Outcome::kTraining;
      absl::Status taken = Take(std::move(progress));
      if (!taken.ok() || ended) return taken;
    }
  }

  absl::StatusOr<engine::RunProgress> Advance(uint32_t steps) {
    const absl::Duration begin = MonotonicNow();
    const auto elapsed = [&] { return MonotonicNow() - begin; };
    auto progress = trainer_->Advance(
        steps, [&] { return control_.halted() || elapsed() >= options_.advance_time; });
    if (!progress.ok()) return progress.status();
    const uint32_t made = progress->step - report_.step();
    pacer_.Observe(made, elapsed());
    report_.Advanced(progress->step, progress->tokens);
    if (made > 0 || progress->evaluated > 0) control_.Progressed(report_.step());
    if (made > 0) share_.Settle();
    return progress;
  }

  // Reports the output of an Advance: points before checkpoints before the end.
  absl::Status Take(engine::RunProgress progress) {
    if (gate_.checks()) DropReported(&progress);
    report_.Add(progress.points);
    const bool ended = progress.outcome != engine::Outcome::kTraining;
    report_.Flush(/*now=*/ended || !progress.checkpoints.empty());
    for (engine::Checkpoint& checkpoint : progress.checkpoints) {
      RETURN_IF_ERROR(report_.SaveCheckpoint(std::move(checkpoint)));
    }
    if (ended) return Finish(progress);
    if (report_.step() != saved_step_ && control_.TakeSave()) return SaveState();
    // Pending blobs may delay a state for a while, but consecutive checkpoints must not prevent it
    // forever.
    const absl::Duration age = MonotonicNow() - saved_at_;
    const absl::Duration hold =
        report_.outbox().publishing() ? options_.max_hold : absl::ZeroDuration();
    if (age < SaveInterval(options_.resume_every, SavingTook()) + hold) {
      return report_.outbox().status();
    }
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

  // Saves a resume state. It covers everything reported before it, so everything made so far is
  // reported first.
  absl::Status SaveState() {
    Outbox& outbox = report_.outbox();
    if (report_.step() == saved_step_) return outbox.status();
    // Waits before the next state is created, because one large state is all the memory that a run
    // may use.
    RETURN_IF_ERROR(outbox.AwaitRoom());
    report_.Flush(/*now=*/true);
    saved_step_ = report_.step();
    saved_at_ = MonotonicNow();
    published_before_ = outbox.publishing_time();
    ASSIGN_OR_RETURN(std::string state,
                     trainer_ != nullptr ? trainer_->ExportState() : std::move(state_));
    exporting_ = MonotonicNow() - saved_at_;
    return report_.SaveState(report_.step(), std::move(state));
  }

  // Returns the time that the last state has cost: this lane's, and the background's since then.
  absl::Duration SavingTook() const {
    return exporting_ + report_.outbox().publishing_time() - published_before_;
  }

  absl::Status Finish(const engine::RunProgress& progress) {
    const bool diverged = progress.outcome == engine::Outcome::kDiverged;
    if (grant_.run().keep_state() && !diverged) {
      RETURN_IF_ERROR(SaveState());
    }
    RETURN_IF_ERROR(report_.Finish(diverged, progress.step));
    if (report_.needs_completion()) trainer_.reset();
    return absl::OkStatus();
  }

  absl::Status Release() {
    // One at a time, settled before the next is created.
    absl::Status saved = report_.outbox().Settle();
    if (saved.ok()) saved = SaveState();
    return saved.ok() ? report_.Release() : saved;
  }

  // Releases the run, because a bad state isn't the run's fault.
  absl::Status Refuse(const absl::Status& why) { return report_.Release(why.message()); }

  const ExecutorOptions& options_;
  const v1::Grant& grant_;
  RunControl& control_;
  MemoryGate& gate_;
  MemoryGate::Share share_;
  RunReport report_;
  StepPacer pacer_;
  std::unique_ptr<engine::Trainer> trainer_;
  std::map<std::string, uint32_t> reported_;  // by metric, the last step
  std::optional<uint32_t> checkpoint_;        // the last one's step
  std::string state_;  // of the last attempt that ran out of memory; empty if there was none
  uint32_t saved_step_;
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
  if (grant.run().spec().spec().has_program()) return ExecuteProgram(grant, control, completion);
  const auto training =
      std::make_shared<Training>(options_, grant, control, &gate_, blobs_, events_);
  absl::Status status = training->Run(setup_);
  if (absl::IsUnavailable(status)) return status;
  if (!status.ok() && !control.abandoned()) training->report().Fail(status);
  if (training->report().needs_completion()) {
    *completion = [training] { training->report().Complete(); };
  }
  return absl::OkStatus();
}

absl::Status Executor::ExecuteProgram(const v1::Grant& grant, RunControl& control,
                                      Completion* completion) {
  const uint32_t lanes = spec::LanesOf(grant.run().spec().spec());
  const auto report = std::make_shared<RunReport>(ReportOptionsOf(options_, lanes), grant, &control,
                                                  blobs_, events_);
  const absl::Status status = RunProgram(options_.programs, grant, control, blobs_, report.get());
  // Another attempt would fail in the same way: a lost worker reports nothing.
  if (!status.ok() && !control.abandoned()) report->Fail(status, /*is_final=*/true);
  if (report->needs_completion()) *completion = [report] { report->Complete(); };
  return absl::OkStatus();
}

}  // namespace ablate::worker
