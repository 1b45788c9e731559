// Trainers that compute nothing, advance as far as the test lets them, and fail on request.
#ifndef ABLATE_TESTS_WORKER_FAKE_TRAINER_H_
#define ABLATE_TESTS_WORKER_FAKE_TRAINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/engine/trainer.h"

namespace ablate::worker {

// FakeLoss returns the loss of every fake run with this seed at this step.
inline constexpr uint64_t kFakeTokens = 3;  // in every step
inline double FakeLoss(uint32_t seed, uint32_t step) { return seed * 1e6 + step; }
// Returns the state that a fake run exports.
std::string FakeState(uint32_t seed, uint32_t step);

// A checkpoint that fake trainers refuse to start from.
inline constexpr char kBadCheckpoint[] = "bad";

// Creates trainers and controls them; runs are identified by their seed. Thread-safe; must outlive
// its trainers.
class FakeTrainers {
 public:
  absl::StatusOr<std::unique_ptr<engine::Trainer>> Make(const engine::RunConfig& run);

  // Makes the run of this seed wait before an update beyond `step`, until the limit is raised or it
  // is stopped.
  void LimitTo(uint32_t seed, uint32_t step);
  void Unlimit(uint32_t seed);
  // Makes Advance fail once the run has made `step` updates.
  void FailAt(uint32_t seed, uint32_t step, absl::Status status);
  void DivergeAt(uint32_t seed, uint32_t step);
  // Makes every trainer of the run evaluate and save a checkpoint before this update.
  void VisitAt(uint32_t seed, uint32_t step);

  // Waits until the run waits at its limit; a test failure on timeout.
  void WaitUntilHeld(uint32_t seed);
  // Waits until the run's trainer is destroyed.
  void WaitUntilGone(uint32_t seed);
  uint32_t made() const;
  // Returns the updates that the run of this seed has made.
  uint32_t StepOf(uint32_t seed) const;
  // Returns the checkpoint that the run of this seed started from; empty if there was none.
  std::string StartOf(uint32_t seed) const;

 private:
  class Trainer;
  struct Run {
    uint32_t limit = UINT32_MAX;
    uint32_t fail_at = UINT32_MAX;
    absl::Status failure;
    uint32_t diverge_at = UINT32_MAX;
    uint32_t visit_at = UINT32_MAX;
    uint32_t step = 0;
    std::string started_from;
    bool held = false;
    int trainers = 0;
  };

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<uint32_t, Run> runs_ ABSL_GUARDED_BY(mutex_);
  uint32_t made_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_TESTS_WORKER_FAKE_TRAINER_H_
