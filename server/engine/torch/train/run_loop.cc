#include "server/engine/torch/train/run_loop.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/task.h"
#include "server/engine/torch/train/boundary.h"
#include "server/engine/torch/train/resume.h"

namespace ablate::engine {
namespace {

// Means over tokens, not over batch means.
struct Evaluation {
  double loss = 0;  // nats a token
  // Fraction of tokens that have the highest logit, 0…1; NaN if the loss isn't finite.
  double accuracy = 0;
};

// `sums` must cover at least one batch.
Evaluation ResultOf(const EvaluationSums& sums) {
  // If logits are NaN none is the highest, but argmax still returns one.
  const double accuracy = std::isfinite(sums.loss) ? sums.correct / sums.tokens
                                                   : std::numeric_limits<double>::quiet_NaN();
  return {sums.loss / sums.tokens, accuracy};
}

// Rounds the norm to the gradient's precision: a float32 run's points take half the space in the
// store.
double InPrecision(Precision precision, double norm) {
  const double rounded = precision == Precision::kFloat64 ? norm : static_cast<float>(norm);
  return std::isfinite(rounded) ? rounded : norm;
}

bool ListsStep(const std::vector<uint32_t>& steps, uint32_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

// Returns the index of the held-out batch with the most tokens, the first one of a tie; there must
// be one. Builds every batch, so that a run calls it once.
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

// Interpolates from `from` at 0 to `to` at 1, along a cosine.
double Anneal(double from, double to, double t) {
  return to + (from - to) / 2 * (1 + std::cos(M_PI * t));
}

double OneCycleLearningRate(uint32_t warmup, double learning_rate, uint32_t step, uint32_t steps) {
  constexpr double kDivFactor = 25, kFinalDivFactor = 1e4;  // PyTorch's names and defaults
  const uint32_t peak = std::max(warmup, 1U) - 1;
  if (step == peak) return learning_rate;
  const double first = learning_rate / kDivFactor;
  if (step < peak) return Anneal(first, learning_rate, static_cast<double>(step) / peak);
  return Anneal(learning_rate, first / kFinalDivFactor,
                static_cast<double>(step - peak) / (steps - 1 - peak));
}

// Returns how far the learning rate has fallen at t, from 1 at 0 to 0 at 1.
double Fall(DecayForm form, double t) {
  switch (form) {
    case DecayForm::kLinear:
      return 1 - t;
    case DecayForm::kSqrt:
      return 1 - std::sqrt(t);
    case DecayForm::kCosine:
      break;
  }
  return 0.5 * (1 + std::cos(M_PI * t));
}

template <typename Element>
void Append(std::vector<Element>& to, std::vector<Element> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

double LearningRate(const ScheduleConfig& schedule, double learning_rate, uint32_t step,
                    uint32_t steps) {
  if (schedule.kind == ScheduleKind::kOneCycle) {
    return OneCycleLearningRate(schedule.warmup, learning_rate, step, steps);
  }
  if (step < schedule.warmup) return learning_rate * (step + 1.0) / (schedule.warmup + 1.0);
  const double t = static_cast<double>(step - schedule.warmup) / (steps - schedule.warmup);
  const double last = schedule.final_rate;
  const auto fallen = [&](DecayForm form, double at) {
    return learning_rate * (last + (1 - last) * Fall(form, at));
  };
  const uint32_t stable = steps - std::min(schedule.decay, steps);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return learning_rate;
    case ScheduleKind::kLinear:
      return fallen(DecayForm::kLinear, t);
    case ScheduleKind::kCosine:
      return fallen(DecayForm::kCosine, t);
    case ScheduleKind::kWsd:
      if (step < stable) return learning_rate;
      return fallen(schedule.decay_form, static_cast<double>(step - stable) / schedule.decay);
    case ScheduleKind::kInverseSqrt:
      return learning_rate * std::sqrt((schedule.warmup + 1.0) / (step + 1.0));
    case ScheduleKind::kOneCycle:
      break;
  }
  return learning_rate;
}

absl::StatusOr<std::unique_ptr<RunLoop>> RunLoop::Make(const RunConfig& config,
                                                       BackendFactory make_backend) {
  ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source, MakeBatchSource(config));
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, make_backend(config));
  return std::unique_ptr<RunLoop>(new RunLoop(config, std::move(source), std::move(backend)));
}

RunLoop::RunLoop(const RunConfig& config, std::unique_ptr<BatchSource> source,
                 std::unique_ptr<Backend> backend)
    : config_(config),
      source_(std::move(source)),
      vocabulary_(KindOf(config.task).vocabulary(config.task)),
      layout_(MakeLayout(config.model, config.training.rule)),
      backend_(std::move(backend)) {}

bool RunLoop::EndDue() const { return diverging_ || progress_.step == config_.training.steps; }

// A run that has diverged visits its last step again.
bool RunLoop::VisitDue() const { return training() && (!visited_ || diverging_); }

bool RunLoop::EvaluationDue() const {
  const bool regular = progress_.step % config_.evaluation.every == 0;
  return diverging_ ? !regular : regular || EndDue();
}

bool RunLoop::CheckpointDue() const {
  const bool listed = ListsStep(config_.training.checkpoints, progress_.step);
  const bool last = config_.training.final_checkpoint && EndDue();
  return diverging_ ? last && !listed : last || listed;
}

// Returns the outcome of a run that has made all its updates: diverged if it ends worse than a
// uniform guess and worse than it began.
Outcome RunLoop::Verdict(std::optional<double> final_loss) const {
  if (!final_loss.has_value()) return Outcome::kDone;
  const double guess = std::log(config_.model.vocabulary);
  const bool converged = *final_loss <= guess || *final_loss <= first_evaluation_.value_or(guess);
  return converged ? Outcome::kDone : Outcome::kDiverged;
}

absl::StatusOr<RunProgress> RunLoop::Advance(uint32_t steps, absl::FunctionRef<bool()> stop) {
  return AtBoundary([&]() -> absl::StatusOr<RunProgress> {
    const uint64_t end = uint64_t{progress_.step} + steps;
    while (progress_.step < end && training() && !stop()) {
      const uint64_t most = std::min<uint64_t>(end - progress_.step, config_.training.steps);
      RETURN_IF_ERROR(Step(static_cast<uint32_t>(most), stop));
    }
    return TakeProgress();
  });
}

absl::Status RunLoop::Step(uint32_t most, absl::FunctionRef<bool()> stop) {
  const absl::StatusOr<bool> visited = Visit(stop);
  if (!visited.ok() || !*visited || !training()) return visited.status();
  absl::Status updated = Update(most);
  return updated.ok() && EndDue() ? Visit(stop).status() : updated;
}

// Completes an evaluation before it reports any of it. A run that is exported in between and
// imported elsewhere repeats its visit, so that nothing may have been reported.
absl::StatusOr<bool> RunLoop::Visit(absl::FunctionRef<bool()> stop) {
  if (!VisitDue()) return true;
  const absl::StatusOr<bool> finished = FinishEvaluation(stop);
  if (!finished.ok() || !*finished) return finished;
  RETURN_IF_ERROR(Report());
  return true;
}

// Makes the evaluation that is due, if any. Advances by at least one batch.
absl::StatusOr<bool> RunLoop::FinishEvaluation(absl::FunctionRef<bool()> stop) {
  if (!EvaluationDue() || source_->HeldOutBatches() == 0) return true;
  const uint32_t before = progress_.evaluated;
  const auto stopped = [&] { return progress_.evaluated > before && stop(); };
  std::vector<std::pair<Evaluated, EvaluationSums*>> passes = {
      {Evaluated::kCurrent, &results_.current}};
  if (config_.training.ema > 0) passes.emplace_back(Evaluated::kEmaWeights, &results_.ema);
  for (const auto& [what, sums] : passes) {
    const absl::StatusOr<bool> finished = FinishPass(what, sums, stopped);
    if (!finished.ok() || !*finished) return finished;
  }
  if (config_.evaluation.record.empty() || results_.recorded.has_value()) return true;
  if (stopped()) return false;
  RETURN_IF_ERROR(RecordGradients());
  return true;
}

// Adds all held-out batches that `sums` lack.
absl::StatusOr<bool> RunLoop::FinishPass(Evaluated what, EvaluationSums* sums,
                                         absl::FunctionRef<bool()> stopped) {
  const size_t all = source_->HeldOutBatches();
  while (sums->batches < all) {
    if (stopped()) return false;
    std::vector<TokenBatch> batches;
    const size_t end = std::min(all, sums->batches + backend_->blocks().evaluation_batches);
    for (size_t i = sums->batches; i < end; ++i) batches.push_back(source_->HeldOut(i));
    RETURN_IF_ERROR(backend_->Evaluate(what, batches, sums));
    progress_.evaluated += static_cast<uint32_t>(batches.size());
  }
  return true;
}

absl::Status RunLoop::RecordGradients() {
  if (!largest_held_out_.has_value()) largest_held_out_ = LargestHeldOut(*source_);
  ASSIGN_OR_RETURN(results_.recorded,
                   backend_->RecordGradients(source_->HeldOut(*largest_held_out_)));
  ++progress_.evaluated;
  return absl::OkStatus();
}

// Reports the evaluation and the checkpoint of the run's step, and its end if it ends here.
absl::Status RunLoop::Report() {
  const uint32_t step = progress_.step;
  if (CheckpointDue()) {
    ASSIGN_OR_RETURN(std::string file, ExportCheckpoint());
    progress_.checkpoints.push_back({step, std::move(file)});
  }
  VisitResults results = std::exchange(results_, {});
  std::optional<double> loss;
  if (results.current.batches > 0) {
    const Evaluation evaluation = ResultOf(results.current);
    progress_.points.push_back({"eval/loss", step, evaluation.loss});
    progress_.points.push_back({"eval/accuracy", step, evaluation.accuracy});
    loss = evaluation.loss;
  }
  if (results.ema.batches > 0) {
    progress_.points.push_back({"eval/ema_loss", step, ResultOf(results.ema).loss});
  }
  if (results.recorded.has_value()) {
    for (RecordedValue& value : *results.recorded) {
      progress_.points.push_back({std::move(value.key), step, value.value});
    }
  }
  if (step == 0 && !diverging_) first_evaluation_ = loss;
  if (EndDue()) progress_.outcome = diverging_ ? Outcome::kDiverged : Verdict(loss);
  Append(progress_.points, std::exchange(last_points_, {}));
  if (diverging_) produced_.pop_front();
  visited_ = true;
  return absl::OkStatus();
}

uint32_t RunLoop::UpdatesToVisit() const {
  const uint32_t step = progress_.step, every = config_.evaluation.every;
  uint32_t next = std::min<uint64_t>(config_.training.steps, uint64_t{step} + every - step % every);
  for (const uint32_t checkpoint : config_.training.checkpoints) {
    if (checkpoint > step) next = std::min(next, checkpoint);
  }
  return next - step;
}

absl::Status RunLoop::Update(uint32_t most) {
  most = std::min(most, UpdatesToVisit());
  const size_t count = std::min<size_t>(most, backend_->blocks().updates);
  while (produced_.size() < count) {
    std::vector<uint64_t> cursor = source_->Cursor();
    produced_.push_back({source_->Next(), std::move(cursor)});
  }
  const TrainingConfig& training = config_.training;
  std::vector<UpdateRequest> updates;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t step = progress_.step + static_cast<uint32_t>(i);
    const auto rate = [&](double peak) {
      return LearningRate(training.schedule, peak, step, training.steps);
    };
    updates.push_back({produced_[i].batch, step, rate(training.optimizer.learning_rate), rate(1)});
  }
  std::vector<UpdateResult> results;
  absl::Status made = backend_->StepBlock(updates, &results);
  for (const UpdateResult& result : results) Take(result);
  return made;
}

void RunLoop::Take(const UpdateResult& result) {
  const uint32_t step = progress_.step;
  std::vector<Point> points = {{"train/loss", step, result.loss}};
  if (std::isfinite(result.loss)) {
    points.push_back(
        {"train/gradient_norm", step, InPrecision(config_.precision, result.gradient_norm)});
  }
  diverging_ = !result.made;
  if (diverging_) {
    last_points_ = std::move(points);
    return;
  }
  Append(progress_.points, std::move(points));
  progress_.tokens += produced_.front().batch.tokens();
  produced_.pop_front();
  ++progress_.step;
  visited_ = false;
}

std::vector<uint64_t> RunLoop::Cursor() const {
  return produced_.empty() ? source_->Cursor() : produced_.front().cursor;
}

RunProgress RunLoop::TakeProgress() {
  RunProgress next;
  next.outcome = progress_.outcome;
  next.step = progress_.step;
  return std::exchange(progress_, std::move(next));
}

absl::StatusOr<std::string> RunLoop::ExportState() {
  return AtBoundary([&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(RunTensors tensors, backend_->Tensors());
    ResumeState state;
    state.tensors = std::move(tensors);
    state.cursor = Cursor();
    state.step = progress_.step;
    state.outcome = progress_.outcome;
    state.first_evaluation = first_evaluation_;
    return WriteResumeState({config_, layout_, backend_->identity()}, state);
  });
}

absl::Status RunLoop::StartFrom(absl::string_view checkpoint) {
  return AtBoundary([&]() -> absl::Status {
    ASSIGN_OR_RETURN(RunTensors tensors, backend_->Tensors());
    std::string parameters(tensors.parameters), buffers(tensors.buffers);
    RETURN_IF_ERROR(
        CopyParameters({layout_, vocabulary_}, tensors.type, checkpoint, &parameters, &buffers));
    RunTensors start = tensors;
    start.parameters = parameters;
    start.buffers = buffers;
    for (NamedBytes& slot : start.slots) {
      if (slot.name == kEmaSlot) slot.bytes = parameters;
    }
    return backend_->SetTensors(start);
  });
}

absl::Status RunLoop::ImportState(absl::string_view file) {
  return AtBoundary([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const ResumeState state,
                     ReadResumeState({config_, layout_, backend_->identity()}, file));
    absl::Status status = source_->SetCursor(state.cursor);
    if (status.ok()) status = backend_->SetTensors(state.tensors);
    if (!status.ok()) return status;
    // The state may be of a shorter run that was done; this one continues. A diverged run stays
    // diverged.
    const bool shorter = state.outcome == Outcome::kDone && state.step < config_.training.steps;
    progress_ = {{}, {}, shorter ? Outcome::kTraining : state.outcome, state.step};
    first_evaluation_ = state.first_evaluation;
    visited_ = false;
    results_ = {};
    diverging_ = false;
    last_points_.clear();
    produced_.clear();
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> RunLoop::ExportCheckpoint() {
  return AtBoundary([&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const RunTensors tensors, backend_->Tensors());
    return WriteCheckpoint({config_.model, backend_->identity(), progress_.step, vocabulary_},
                           layout_, tensors);
  });
}

}  // namespace ablate::engine
