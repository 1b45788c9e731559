// Implements the trainer on any backend: evaluations, checkpoints, updates, divergence, progress
// and their part of the resume state. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_TORCH_TRAIN_RUN_LOOP_H_
#define ABLATE_SERVER_ENGINE_TORCH_TRAIN_RUN_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/core/backend.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/layout.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

// Returns the learning rate of update `step` → `step` + 1 in a run of `steps` updates, 0 ≤ step <
// steps. With w warm-up steps it is learning_rate·(step+1)/(w+1) below w. From w on, with t = (step
// − w)/(steps − w), it is learning_rate (constant), learning_rate·(1 − t) (linear),
// learning_rate·(1 + cos πt)/2 (cosine) or learning_rate·√((w+1)/(step+1)) (inverse_sqrt).
//
// wsd is constant except in the last `decay` steps. There, with t = (step − (steps − decay))/decay,
// it is learning_rate·φ(t), where φ(t) is 1 − t, 1 − √t or (1 + cos πt)/2. With a final rate f the
// factor φ of linear, cosine and wsd becomes f + (1 − f)·φ.
//
// one_cycle is torch.optim.lr_scheduler.OneCycleLR with cosines, div_factor 25 and final_div_factor
// 10⁴. Between step `from` with learning rate a and step `to` with learning rate b it is b + (a −
// b)·(1 + cos πt)/2, with t = (step − from)/(to − from). It rises from learning_rate/25 at step 0
// to learning_rate at step w − 1, and falls to learning_rate/250,000 at step `steps` − 1. If w is 0
// or 1, it starts at `learning_rate`.
double LearningRate(const ScheduleConfig& schedule, double learning_rate, uint32_t step,
                    uint32_t steps);

// Results of the current step's evaluation and checkpoint (its "visit") that haven't been reported.
struct VisitResults {
  EvaluationSums current;  // of no batch if there is no evaluation
  EvaluationSums ema;      // of the EMA weights, likewise
  std::optional<std::vector<RecordedValue>> recorded;
};

// The trainer. Errors are the backend's. After RESOURCE_EXHAUSTED the run is as before the call,
// except that finished updates, visits and evaluation batches are kept.
class RunLoop : public Trainer {
 public:
  // Returns INVALID_ARGUMENT if the data can't be used.
  static absl::StatusOr<std::unique_ptr<RunLoop>> Make(const RunConfig& config,
                                                       BackendFactory make_backend);

  absl::StatusOr<RunProgress> Advance(uint32_t steps, absl::FunctionRef<bool()> stop) override;
  absl::StatusOr<std::string> ExportState() override;
  absl::Status StartFrom(absl::string_view checkpoint) override;
  absl::Status ImportState(absl::string_view file) override;
  absl::StatusOr<std::string> ExportCheckpoint() override;

 private:
  RunLoop(const RunConfig& config, std::unique_ptr<BatchSource> source,
          std::unique_ptr<Backend> backend);

  bool training() const { return progress_.outcome == Outcome::kTraining; }
  // Returns true if the run ends at the current step.
  bool EndDue() const;
  bool VisitDue() const;
  bool EvaluationDue() const;
  bool CheckpointDue() const;
  Outcome Verdict(std::optional<double> final_loss) const;

  // Makes one update, after the evaluation and checkpoint that are due before it, and further ones
  // in the same block if the backend wants them, up to `most` in all. A run at its last step is
  // evaluated, checkpointed and ended. `stop` is called between two calls of an evaluation; if it
  // returns true, the step is interrupted, nothing of it is reported, and the next call continues
  // it.
  absl::Status Step(uint32_t most, absl::FunctionRef<bool()> stop);
  // These three return false if they were stopped.
  absl::StatusOr<bool> Visit(absl::FunctionRef<bool()> stop);
  absl::StatusOr<bool> FinishEvaluation(absl::FunctionRef<bool()> stop);
  absl::StatusOr<bool> FinishPass(Evaluated what, EvaluationSums* sums,
                                  absl::FunctionRef<bool()> stopped);
  absl::Status RecordGradients();
  absl::Status Report();
  // Returns the number of updates before the next evaluation, checkpoint or end, at least 1.
  uint32_t UpdatesToVisit() const;
  absl::Status Update(uint32_t most);
  void Take(const UpdateResult& result);
  // Returns the position of the next batch that no update has used.
  std::vector<uint64_t> Cursor() const;
  RunProgress TakeProgress();

  const RunConfig config_;
  const std::unique_ptr<BatchSource> source_;
  const std::string vocabulary_;  // as TaskKind::vocabulary
  const ParameterLayout layout_;
  const std::unique_ptr<Backend> backend_;

  RunProgress progress_;                    // output that hasn't been taken yet; no error loses it
  std::optional<double> first_evaluation_;  // held-out loss at step 0
  std::optional<size_t> largest_held_out_;  // index of the held-out batch whose gradients are
                                            // recorded, once known
  bool visited_ = false;                    // true after the evaluation and checkpoint of
                                            // progress_.step
  VisitResults results_;                    // of progress_.step
  // True if the update of progress_.step can't be made. last_points_ has its points, which are
  // reported when the run ends.
  bool diverging_ = false;
  std::vector<Point> last_points_;

  // A batch that the source has produced, and the source's cursor before it.
  struct Produced {
    TokenBatch batch;
    std::vector<uint64_t> cursor;
  };
  // The batches of the next updates, kept if an update fails.
  std::deque<Produced> produced_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_TRAIN_RUN_LOOP_H_
