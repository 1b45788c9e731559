#include "server/engine/train/run_loop.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "server/engine/task.h"
#include "server/engine/train/checkpoint.h"
#include "server/engine/train/resume.h"

namespace ablate::engine {
namespace {

// Averages over tokens, never averages of batch averages.
struct Evaluation {
  double loss = 0;  // nats a token
  // Share of tokens whose score is the highest, 0…1; NaN if the loss is not finite.
  double accuracy = 0;
};

// Of at least one batch.
Evaluation ResultOf(const EvaluationSums& sums) {
  // Where scores are no numbers none is the highest, and argmax still names one.
  const double accuracy =
      std::isfinite(sums.loss) ? sums.hits / sums.tokens : std::numeric_limits<double>::quiet_NaN();
  return {sums.loss / sums.tokens, accuracy};
}

// As the gradient is: a float32 run's points take half the space in the store.
double InPrecision(Precision precision, double norm) {
  const double rounded = precision == Precision::kFloat32 ? static_cast<float>(norm) : norm;
  return std::isfinite(rounded) ? rounded : norm;
}

bool ListsStep(const std::vector<uint32_t>& steps, uint32_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

// Whether the run ends where it stands.
bool EndDue(const StackRun& run) {
  return run.diverging || run.progress.step == run.config.training.steps;
}

// A run that turns out to diverge is visited once more at its last step.
bool VisitDue(const StackRun& run) { return run.training() && (!run.visited || run.diverging); }

bool EvaluationDue(const StackRun& run) {
  const bool regular = run.progress.step % run.config.evaluation.every == 0;
  return run.diverging ? !regular : regular || EndDue(run);
}

bool CheckpointDue(const StackRun& run) {
  const TrainingConfig& training = run.config.training;
  const bool listed = ListsStep(training.checkpoints, run.progress.step);
  const bool last = training.final_checkpoint && EndDue(run);
  return run.diverging ? last && !listed : last || listed;
}

// A run that has made all its updates has diverged if it ends worse than guessing and than it
// began.
Outcome Verdict(const StackRun& run, std::optional<double> final_loss) {
  if (!final_loss.has_value()) return Outcome::kDone;
  const double guess = std::log(run.config.model.vocabulary);
  const bool converged =
      *final_loss <= guess || *final_loss <= run.first_evaluation.value_or(guess);
  return converged ? Outcome::kDone : Outcome::kDiverged;
}

// Returns the index of the held-out batch with the most tokens, the first of equals; there must be
// one. Makes every batch: a run asks once.
size_t LargestHeldOut(const BatchSource& source) {
  size_t largest = 0;
  uint64_t most = 0;
  for (size_t i = 0; i < source.HeldOutBatches(); ++i) {
    const uint64_t tokens = source.HeldOut(i).tokens();
    if (tokens > most) largest = i;
    most = std::max(most, tokens);
  }
  return largest;
}

// From `from` at 0 to `to` at 1, along a cosine.
double Anneal(double from, double to, double t) {
  return to + (from - to) / 2 * (1 + std::cos(M_PI * t));
}

double OneCycleRate(uint32_t warmup, double rate, uint32_t step, uint32_t steps) {
  constexpr double kDivFactor = 25, kFinalDivFactor = 1e4;  // as PyTorch calls its defaults
  const uint32_t peak = std::max(warmup, 1U) - 1;
  if (step == peak) return rate;
  const double first = rate / kDivFactor;
  if (step < peak) return Anneal(first, rate, static_cast<double>(step) / peak);
  return Anneal(rate, first / kFinalDivFactor,
                static_cast<double>(step - peak) / (steps - 1 - peak));
}

template <typename Element>
void Append(std::vector<Element>& to, std::vector<Element> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

double LearningRate(const ScheduleConfig& schedule, double rate, uint32_t step, uint32_t steps) {
  if (schedule.kind == ScheduleKind::kOneCycle) {
    return OneCycleRate(schedule.warmup, rate, step, steps);
  }
  if (step < schedule.warmup) return rate * (step + 1.0) / (schedule.warmup + 1.0);
  const double t = static_cast<double>(step - schedule.warmup) / (steps - schedule.warmup);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return rate;
    case ScheduleKind::kLinear:
      return rate * (1 - t);
    case ScheduleKind::kCosine:
      return rate * 0.5 * (1 + std::cos(M_PI * t));
    case ScheduleKind::kInverseSqrt:
      return rate * std::sqrt((schedule.warmup + 1.0) / (step + 1.0));
    case ScheduleKind::kOneCycle:
      break;
  }
  return rate;
}

absl::StatusOr<std::unique_ptr<RunLoop>> RunLoop::Make(const std::vector<RunConfig>& configs,
                                                       BackendFactory* make_backend) {
  std::vector<StackRun> runs;
  for (const RunConfig& config : configs) {
    absl::StatusOr<std::unique_ptr<BatchSource>> source = MakeBatchSource(config);
    if (!source.ok()) return source.status();
    StackRun run;
    run.config = config;
    run.source = *std::move(source);
    run.vocabulary = KindOf(config.task).vocabulary(config.task);
    runs.push_back(std::move(run));
  }
  absl::StatusOr<std::unique_ptr<Backend>> backend = make_backend(configs);
  if (!backend.ok()) return backend.status();
  return std::unique_ptr<RunLoop>(new RunLoop(std::move(runs), *std::move(backend)));
}

RunLoop::RunLoop(std::vector<StackRun> runs, std::unique_ptr<Backend> backend)
    : runs_(std::move(runs)),
      layout_(MakeLayout(runs_.front().config.model, runs_.front().config.training.rule)),
      backend_(std::move(backend)) {}

absl::StatusOr<bool> RunLoop::Step(absl::FunctionRef<bool()> stop) {
  absl::StatusOr<bool> visited = Visit(/*ends_only=*/false, stop);
  if (!visited.ok()) return visited.status();
  if (!*visited) return true;
  const auto training = [](const StackRun& run) { return run.training(); };
  if (std::none_of(runs_.begin(), runs_.end(), training)) return false;
  if (absl::Status updated = Update(); !updated.ok()) return updated;
  visited = Visit(/*ends_only=*/true, stop);
  if (!visited.ok()) return visited.status();
  return true;
}

// All evaluations before the first report: a run that was exported in between and is imported
// elsewhere makes its visit again, so nothing of it may be reported yet.
absl::StatusOr<bool> RunLoop::Visit(bool ends_only, absl::FunctionRef<bool()> stop) {
  const auto due = [&](const StackRun& run) {
    return VisitDue(run) && (!ends_only || EndDue(run));
  };
  for (int run = 0; run < runs(); ++run) {
    if (!due(runs_[run])) continue;
    const absl::StatusOr<bool> finished = FinishEvaluation(run, stop);
    if (!finished.ok() || !*finished) return finished;
  }
  for (int run = 0; run < runs(); ++run) {
    if (!due(runs_[run])) continue;
    absl::Status reported = Report(run);
    if (!reported.ok()) return reported;
  }
  return true;
}

// True when the evaluation that is due, if one is, is complete. Goes on by a batch at least.
absl::StatusOr<bool> RunLoop::FinishEvaluation(int index, absl::FunctionRef<bool()> stop) {
  StackRun& run = runs_[index];
  if (!EvaluationDue(run) || run.source->HeldOutBatches() == 0) return true;
  const uint32_t before = run.progress.evaluated;
  const auto stopped = [&] { return run.progress.evaluated > before && stop(); };
  std::vector<std::pair<Evaluated, EvaluationSums*>> passes = {
      {Evaluated::kCurrent, &run.results.current}};
  if (run.config.training.ema > 0) passes.emplace_back(Evaluated::kAverage, &run.results.average);
  for (const auto& [what, sums] : passes) {
    const absl::StatusOr<bool> finished = FinishPass(index, what, sums, stopped);
    if (!finished.ok() || !*finished) return finished;
  }
  if (run.config.evaluation.record.empty() || run.results.recorded.has_value()) return true;
  if (stopped()) return false;
  absl::Status recorded = RecordGradients(index);
  if (!recorded.ok()) return recorded;
  return true;
}

absl::Status RunLoop::RecordGradients(int index) {
  StackRun& run = runs_[index];
  if (!run.largest_held_out.has_value()) run.largest_held_out = LargestHeldOut(*run.source);
  absl::StatusOr<std::vector<RecordedValue>> recorded =
      backend_->RecordGradients(index, run.source->HeldOut(*run.largest_held_out));
  if (!recorded.ok()) return recorded.status();
  run.results.recorded = *std::move(recorded);
  ++run.progress.evaluated;
  return absl::OkStatus();
}

// True when `sums` are of all held-out batches.
absl::StatusOr<bool> RunLoop::FinishPass(int index, Evaluated what, EvaluationSums* sums,
                                         absl::FunctionRef<bool()> stopped) {
  StackRun& run = runs_[index];
  while (sums->batches < run.source->HeldOutBatches()) {
    if (stopped()) return false;
    const TokenBatch batch = run.source->HeldOut(sums->batches);
    absl::Status added = backend_->Evaluate(index, what, batch, sums);
    if (!added.ok()) return added;
    ++run.progress.evaluated;
  }
  return true;
}

// The evaluation and the checkpoint of the run's step, and its end if that is here.
absl::Status RunLoop::Report(int index) {
  StackRun& run = runs_[index];
  const uint32_t step = run.progress.step;
  if (CheckpointDue(run)) {
    absl::StatusOr<std::string> file = ExportCheckpoint(index);
    if (!file.ok()) return file.status();
    run.progress.checkpoints.push_back({step, *std::move(file)});
  }
  VisitResults results = std::exchange(run.results, {});
  std::optional<double> loss;
  if (results.current.batches > 0) {
    const Evaluation evaluation = ResultOf(results.current);
    run.progress.points.push_back({"eval/loss", step, evaluation.loss});
    run.progress.points.push_back({"eval/accuracy", step, evaluation.accuracy});
    loss = evaluation.loss;
  }
  if (results.average.batches > 0) {
    run.progress.points.push_back({"eval/ema_loss", step, ResultOf(results.average).loss});
  }
  if (results.recorded.has_value()) {
    for (RecordedValue& value : *results.recorded) {
      run.progress.points.push_back({std::move(value.key), step, value.value});
    }
  }
  if (step == 0 && !run.diverging) run.first_evaluation = loss;
  if (EndDue(run)) run.progress.outcome = run.diverging ? Outcome::kDiverged : Verdict(run, loss);
  Append(run.progress.points, std::exchange(run.last_points, {}));
  if (run.diverging) run.batch.reset();
  run.visited = true;
  return absl::OkStatus();
}

absl::Status RunLoop::Update() {
  DrawBatches();
  const absl::StatusOr<std::vector<UpdateResult>> results = backend_->Step(Requests());
  if (!results.ok()) return results.status();
  for (int index = 0; index < runs(); ++index) {
    StackRun& run = runs_[index];
    if (!run.batch.has_value()) continue;
    const UpdateResult& result = (*results)[index];
    std::vector<Point> points = {{"train/loss", run.progress.step, result.loss}};
    if (std::isfinite(result.loss)) {
      points.push_back({"train/gradient_norm", run.progress.step,
                        InPrecision(run.config.precision, result.gradient_norm)});
    }
    run.diverging = !result.made;
    if (run.diverging) {
      run.last_points = std::move(points);
      continue;
    }
    Append(run.progress.points, std::move(points));
    run.progress.tokens += run.batch->tokens();
    run.batch.reset();
    ++run.progress.step;
    run.visited = false;
  }
  return absl::OkStatus();
}

void RunLoop::DrawBatches() {
  for (StackRun& run : runs_) {
    if (!run.training() || run.batch.has_value()) continue;
    run.cursor = run.source->Cursor();
    run.batch = run.source->Next();
  }
}

std::vector<UpdateRequest> RunLoop::Requests() const {
  std::vector<UpdateRequest> requests;
  for (const StackRun& run : runs_) {
    const TrainingConfig& training = run.config.training;
    const uint32_t step = run.progress.step;
    requests.push_back(
        {run.batch.has_value() ? &*run.batch : nullptr, step,
         LearningRate(training.schedule, training.optimizer.learning_rate, step, training.steps)});
  }
  return requests;
}

RunProgress RunLoop::TakeProgress(int index) {
  RunProgress& progress = runs_[index].progress;
  RunProgress next;
  next.outcome = progress.outcome;
  next.step = progress.step;
  return std::exchange(progress, std::move(next));
}

absl::StatusOr<std::string> RunLoop::ExportState(int index) {
  const StackRun& run = runs_[index];
  absl::StatusOr<RunTensors> tensors = backend_->Tensors(index);
  if (!tensors.ok()) return tensors.status();
  ResumeState state;
  state.tensors = *std::move(tensors);
  state.cursor = run.batch.has_value() ? run.cursor : run.source->Cursor();
  state.step = run.progress.step;
  state.outcome = run.progress.outcome;
  state.first_evaluation = run.first_evaluation;
  return WriteResumeState({run.config, layout_, backend_->identity()}, state);
}

absl::Status RunLoop::ImportState(int index, absl::string_view file) {
  StackRun& run = runs_[index];
  const absl::StatusOr<ResumeState> state =
      ReadResumeState({run.config, layout_, backend_->identity()}, file);
  if (!state.ok()) return state.status();
  absl::Status status = run.source->SetCursor(state->cursor);
  if (status.ok()) status = backend_->SetTensors(index, state->tensors);
  if (!status.ok()) return status;
  // Of a run that was done where this one goes on. What has diverged stays so.
  const bool shorter = state->outcome == Outcome::kDone && state->step < run.config.training.steps;
  run.progress = {{}, {}, shorter ? Outcome::kTraining : state->outcome, state->step};
  run.first_evaluation = state->first_evaluation;
  run.visited = false;
  run.results = {};
  run.diverging = false;
  run.last_points.clear();
  run.batch.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::string> RunLoop::ExportCheckpoint(int index) {
  const StackRun& run = runs_[index];
  const absl::StatusOr<RunTensors> tensors = backend_->Tensors(index);
  if (!tensors.ok()) return tensors.status();
  return WriteCheckpoint(
      {run.config.model, backend_->identity(), run.progress.step, run.vocabulary}, layout_,
      *tensors);
}

}  // namespace ablate::engine
