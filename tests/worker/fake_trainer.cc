// Implements the fake training loop.
#include "tests/worker/fake_trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::worker {
namespace {

constexpr std::chrono::seconds kTimeout(30);

}  // namespace

std::string FakeState(uint32_t seed, uint32_t step) {
  return absl::StrCat("state of ", seed, " at ", step);
}

class FakeTrainers::Trainer : public engine::Trainer {
 public:
  Trainer(FakeTrainers* all, engine::RunConfig config) : all_(all), config_(std::move(config)) {
    MutexLock lock(&all_->mutex_);
    ++all_->made_;
    ++run().trainers;
    run().step = 0;
  }
  ~Trainer() override {
    MutexLock lock(&all_->mutex_);
    --run().trainers;
    all_->changed_.SignalAll();
  }

  absl::StatusOr<engine::RunProgress> Advance(uint32_t steps,
                                              absl::FunctionRef<bool()> stop) override {
    MutexLock lock(&all_->mutex_);
    engine::RunProgress& progress = progress_;  // no error loses it
    for (uint32_t i = 0; i < steps && step_ < config_.training.steps; ++i) {
      if (!MayStep(stop)) break;
      if (step_ == run().visit_at && !std::exchange(visited_, true)) {
        progress.points.push_back({"eval/loss", step_, 2.0});
        progress.checkpoints.push_back({step_, *ExportCheckpoint()});
      }
      if (step_ >= run().fail_at) return run().failure;
      if (step_ >= run().diverge_at) return Ended(engine::Outcome::kDiverged);
      progress.points.push_back({"train/loss", step_, FakeLoss(config_.seed, step_)});
      progress.tokens += kFakeTokens;
      run().step = ++step_;
    }
    if (step_ == config_.training.steps) {
      progress.points.push_back({"eval/loss", step_, 1.0});
      return Ended(engine::Outcome::kDone);
    }
    progress.step = step_;
    return std::exchange(progress_, {});
  }

  absl::Status StartFrom(absl::string_view checkpoint) override {
    MutexLock lock(&all_->mutex_);
    if (checkpoint == kBadCheckpoint) return absl::InvalidArgumentError("it has no tensor w");
    run().started_from = std::string(checkpoint);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ExportState() override { return FakeState(config_.seed, step_); }

  absl::Status ImportState(absl::string_view state) override {
    for (uint32_t step = 0; step <= config_.training.steps; ++step) {
      if (state != FakeState(config_.seed, step)) continue;
      step_ = step;
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError("the state is another trainer's");
  }

  absl::StatusOr<std::string> ExportCheckpoint() override {
    return absl::StrCat("parameters of ", config_.seed, " at ", step_);
  }

 private:
  Run& run() ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_->mutex_) { return all_->runs_[config_.seed]; }

  bool MayStep(absl::FunctionRef<bool()> stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_->mutex_) {
    while (!stop() && step_ >= run().limit) {
      run().held = true;
      all_->changed_.SignalAll();
      // `stop` has no signal, so it is polled: a real step would also end by itself.
      all_->changed_.WaitFor(&all_->mutex_, std::chrono::milliseconds(1));
    }
    run().held = false;
    return !stop();
  }

  engine::RunProgress Ended(engine::Outcome outcome) {
    engine::RunProgress progress = std::exchange(progress_, {});
    progress.outcome = outcome;
    progress.step = step_;
    progress.checkpoints.push_back({step_, *ExportCheckpoint()});
    return progress;
  }

  FakeTrainers* const all_;
  const engine::RunConfig config_;
  engine::RunProgress progress_;
  uint32_t step_ = 0;
  bool visited_ = false;
};

absl::StatusOr<std::unique_ptr<engine::Trainer>> FakeTrainers::Make(const engine::RunConfig& run) {
  return std::make_unique<Trainer>(this, run);
}

void FakeTrainers::VisitAt(uint32_t seed, uint32_t step) {
  MutexLock lock(&mutex_);
  runs_[seed].visit_at = step;
}

void FakeTrainers::LimitTo(uint32_t seed, uint32_t step) {
  MutexLock lock(&mutex_);
  runs_[seed].limit = step;
  runs_[seed].held = false;
  changed_.SignalAll();
}

void FakeTrainers::Unlimit(uint32_t seed) { LimitTo(seed, UINT32_MAX); }

void FakeTrainers::FailAt(uint32_t seed, uint32_t step, absl::Status status) {
  MutexLock lock(&mutex_);
  runs_[seed].fail_at = step;
  runs_[seed].failure = std::move(status);
}

void FakeTrainers::DivergeAt(uint32_t seed, uint32_t step) {
  MutexLock lock(&mutex_);
  runs_[seed].diverge_at = step;
}

void FakeTrainers::WaitUntilHeld(uint32_t seed) {
  MutexLock lock(&mutex_);
  while (!runs_[seed].held) {
    if (!changed_.WaitFor(&mutex_, kTimeout)) {
      ADD_FAILURE() << "run " << seed << " did not reach its limit";
      return;
    }
  }
}

void FakeTrainers::WaitUntilGone(uint32_t seed) {
  MutexLock lock(&mutex_);
  while (runs_[seed].trainers > 0) {
    if (!changed_.WaitFor(&mutex_, kTimeout)) {
      ADD_FAILURE() << "run " << seed << " goes on";
      return;
    }
  }
}

uint32_t FakeTrainers::made() const {
  MutexLock lock(&mutex_);
  return made_;
}

uint32_t FakeTrainers::StepOf(uint32_t seed) const {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(seed);
  return found == runs_.end() ? 0 : found->second.step;
}

std::string FakeTrainers::StartOf(uint32_t seed) const {
  MutexLock lock(&mutex_);
  const auto run = runs_.find(seed);
  return run == runs_.end() ? "" : run->second.started_from;
}

}  // namespace ablate::worker
