// The trainer, whatever computes: what is due before an update, the update, evaluations,
// checkpoints, divergence, progress, and what a resume state holds of all that. Torch-free: a
// backend computes.
#ifndef ABLATE_SERVER_ENGINE_TRAIN_RUN_LOOP_H_
#define ABLATE_SERVER_ENGINE_TRAIN_RUN_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/layout.h"
#include "server/engine/train/backend.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

// Rate of update `step` → `step` + 1 of a run of `steps` updates, 0 ≤ step < steps. With w warm-up
// steps, rate·(step+1)/(w+1) below w; from w on, with t = (step − w)/(steps − w): rate (constant),
// rate·(1 − t) (linear), rate·(1 + cos πt)/2 (cosine) or rate·√((w+1)/(step+1)) (inverse_sqrt).
//
// one_cycle is torch.optim.lr_scheduler.OneCycleLR with its cosines, div_factor 25 and
// final_div_factor 10⁴: between two steps, of which `from` has rate a and `to` has rate b, b +
// (a − b)·(1 + cos πt)/2 with t = (step − from)/(to − from). It rises from rate/25 at step 0 to
// rate at step w − 1, and falls to rate/250,000 at step `steps` − 1. Where w is 0 or 1 it begins
// with `rate`.
double LearningRate(const ScheduleConfig& schedule, double rate, uint32_t step, uint32_t steps);

// What a visit of a step has computed so far, until it is reported.
struct VisitResults {
  EvaluationSums current;  // of no batch where nothing is evaluated
  EvaluationSums average;  // of the averaged parameters, likewise
  std::optional<std::vector<RecordedValue>> recorded;
};

// Errors are the backend's; after RESOURCE_EXHAUSTED the run is as before the call, except that
// finished updates, visits and batches of evaluations stay.
class RunLoop : public Trainer {
 public:
  // INVALID_ARGUMENT if the data can't be used.
  static absl::StatusOr<std::unique_ptr<RunLoop>> Make(const RunConfig& config,
                                                       BackendFactory* make_backend);

  absl::StatusOr<RunProgress> Advance(uint32_t steps, absl::FunctionRef<bool()> stop) override;
  absl::StatusOr<std::string> ExportState() override;
  absl::Status ImportState(absl::string_view file) override;
  absl::StatusOr<std::string> ExportCheckpoint() override;

 private:
  RunLoop(const RunConfig& config, std::unique_ptr<BatchSource> source,
          std::unique_ptr<Backend> backend);

  bool training() const { return progress_.outcome == Outcome::kTraining; }
  // Whether the run ends where it stands.
  bool EndDue() const;
  bool VisitDue() const;
  bool EvaluationDue() const;
  bool CheckpointDue() const;
  Outcome Verdict(std::optional<double> final_loss) const;

  // One update, after the evaluation and the checkpoint that are due before it; a run that reaches
  // its last step is evaluated, checkpointed and ended. `stop` is asked between two batches of an
  // evaluation: when it says so, the step is left there with nothing of it reported, and the next
  // call goes on with it.
  absl::Status Step(absl::FunctionRef<bool()> stop);
  // These three return false if they were stopped.
  absl::StatusOr<bool> Visit(absl::FunctionRef<bool()> stop);
  absl::StatusOr<bool> FinishEvaluation(absl::FunctionRef<bool()> stop);
  absl::StatusOr<bool> FinishPass(Evaluated what, EvaluationSums* sums,
                                  absl::FunctionRef<bool()> stopped);
  absl::Status RecordGradients();
  absl::Status Report();
  absl::Status Update();
  RunProgress TakeProgress();

  const RunConfig config_;
  const std::unique_ptr<BatchSource> source_;
  const std::string vocabulary_;  // as TaskKind::vocabulary
  const ParameterLayout layout_;
  const std::unique_ptr<Backend> backend_;

  RunProgress progress_;  // what has been produced, until it is taken: no error loses any of it
  std::optional<double> first_evaluation_;  // held-out loss at step 0
  std::optional<size_t> largest_held_out_;  // index of the batch that is recorded of, once known
  bool visited_ = false;                    // evaluation and checkpoint of progress_.step are made
  VisitResults results_;                    // of progress_.step
  // The update of progress_.step can't be made: its points, reported when the run's end is visited.
  bool diverging_ = false;
  std::vector<Point> last_points_;

  // The batch of the next update, kept when that update fails, and where the source stood before
  // it.
  std::optional<TokenBatch> batch_;
  std::vector<uint64_t> cursor_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_RUN_LOOP_H_
