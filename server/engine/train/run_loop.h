// The loop that every way to train shares: what is due before an update, the update, evaluations,
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

// One run of a stack beside its tensors. What has been produced waits in `progress` until it is
// taken, so that a step that runs out of memory loses nothing of the steps before it.
struct StackRun {
  RunConfig config;
  std::unique_ptr<BatchSource> source;
  std::string vocabulary;  // as TaskKind::vocabulary

  RunProgress progress;
  std::optional<double> first_evaluation;  // held-out loss at step 0
  std::optional<size_t> largest_held_out;  // index of the batch that is recorded of, once known
  bool visited = false;                    // evaluation and checkpoint of progress.step are made
  VisitResults results;                    // of progress.step
  // The update of progress.step can't be made: its points, reported when the run's end is visited.
  bool diverging = false;
  std::vector<Point> last_points;

  // The batch of the next update, kept when that update fails, and where the source stood before
  // it.
  std::optional<TokenBatch> batch;
  std::vector<uint64_t> cursor;

  bool training() const { return progress.outcome == Outcome::kTraining; }
};

// A stack of equally shaped runs that make their updates together. Not thread-safe. Errors are the
// backend's; after RESOURCE_EXHAUSTED it is as before the call, except that finished visits and
// batches of evaluations stay.
class RunLoop {
 public:
  // `configs` are checked and equal but for seed and optimizer numbers. INVALID_ARGUMENT if the
  // data can't be used.
  static absl::StatusOr<std::unique_ptr<RunLoop>> Make(const std::vector<RunConfig>& configs,
                                                       BackendFactory* make_backend);

  // One update of every run that is still training, after the evaluation and the checkpoint that
  // are due before it; a run that reaches its last step is evaluated, checkpointed and ended. False
  // if no run was training. `stop` is asked between two batches of an evaluation: when it says so,
  // the step is left there with nothing of it reported, and the next call goes on with it.
  absl::StatusOr<bool> Step(absl::FunctionRef<bool()> stop);

  int runs() const { return static_cast<int>(runs_.size()); }

  // What `run` has produced since the last call.
  RunProgress TakeProgress(int run);

  absl::StatusOr<std::string> ExportState(int run);
  absl::Status ImportState(int run, absl::string_view state);
  absl::StatusOr<std::string> ExportCheckpoint(int run);

 private:
  RunLoop(std::vector<StackRun> runs, std::unique_ptr<Backend> backend);

  // Whether every visit that is due was made; false if it was stopped before any of them.
  absl::StatusOr<bool> Visit(bool ends_only, absl::FunctionRef<bool()> stop);
  absl::StatusOr<bool> FinishEvaluation(int run, absl::FunctionRef<bool()> stop);
  absl::StatusOr<bool> FinishPass(int run, Evaluated what, EvaluationSums* sums,
                                  absl::FunctionRef<bool()> stopped);
  absl::Status RecordGradients(int run);
  absl::Status Report(int run);
  absl::Status Update();
  void DrawBatches();
  std::vector<UpdateRequest> Requests() const;

  std::vector<StackRun> runs_;
  const ParameterLayout layout_;
  const std::unique_ptr<Backend> backend_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAIN_RUN_LOOP_H_
