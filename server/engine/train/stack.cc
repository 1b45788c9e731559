// A step of a stack: what is due before the update, the update, and the ends of runs.
#include "server/engine/train/stack.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/engine/model/init.h"
#include "server/engine/task.h"
#include "server/engine/train/checkpoint.h"
#include "server/engine/train/evaluate.h"
#include "server/engine/train/gradient.h"
#include "server/engine/train/resume.h"
#include "server/engine/train/schedule.h"

namespace ablate::engine {
namespace {

std::vector<double> OnHost(const at::Tensor& values) {
  const at::Tensor host = values.to(at::TensorOptions().device(at::kCPU).dtype(at::kDouble));
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
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

template <typename Element>
void Append(std::vector<Element>& to, std::vector<Element> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStack>> TrainingStack::Make(
    const std::vector<RunConfig>& configs) {
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
  const RunConfig& first = configs.front();
  return std::unique_ptr<TrainingStack>(
      new TrainingStack(std::move(runs), TensorOptionsOf(first.device, first.precision)));
}

TrainingStack::TrainingStack(std::vector<StackRun> runs, at::TensorOptions options)
    : runs_(std::move(runs)),
      options_(options),
      parameters_(runs_.front().config.model, static_cast<int64_t>(runs_.size()), options),
      optimizer_(runs_.front().config.training.optimizer.kind, parameters_.values()) {
  const at::NoGradGuard no_grad;
  for (size_t run = 0; run < runs_.size(); ++run) {
    const RunConfig& config = runs_[run].config;
    parameters_.values()[static_cast<int64_t>(run)].copy_(
        InitialParameters(config.model, parameters_.layout(), config.seed));
  }
}

absl::StatusOr<bool> TrainingStack::Step(absl::FunctionRef<bool()> stop) {
  absl::StatusOr<bool> visited = Visit(/*ends_only=*/false, stop);
  if (!visited.ok()) return visited.status();
  if (!*visited) return true;
  const auto training = [](const StackRun& run) { return run.training(); };
  if (std::none_of(runs_.begin(), runs_.end(), training)) return false;
  Update();
  visited = Visit(/*ends_only=*/true, stop);
  if (!visited.ok()) return visited.status();
  return true;
}

// All evaluations before the first report: a run that was exported in between and is imported
// elsewhere makes its visit again, so nothing of it may be reported yet.
absl::StatusOr<bool> TrainingStack::Visit(bool ends_only, absl::FunctionRef<bool()> stop) {
  const auto due = [&](const StackRun& run) {
    return VisitDue(run) && (!ends_only || EndDue(run));
  };
  for (int run = 0; run < runs(); ++run) {
    if (due(runs_[run]) && !FinishEvaluation(run, stop)) return false;
  }
  for (int run = 0; run < runs(); ++run) {
    if (!due(runs_[run])) continue;
    absl::Status reported = Report(run);
    if (!reported.ok()) return reported;
  }
  return true;
}

// True when the evaluation that is due, if one is, is complete. Goes on by a batch at least.
bool TrainingStack::FinishEvaluation(int index, absl::FunctionRef<bool()> stop) {
  StackRun& run = runs_[index];
  if (!EvaluationDue(run)) return true;
  if (run.held_out.empty()) {
    for (const TokenBatch& batch : run.source->HeldOut()) {
      run.held_out.push_back(MakeStackBatch({&batch}, run.config.model.loss, options_));
    }
  }
  if (run.held_out.empty()) return true;
  if (!run.evaluation.has_value()) run.evaluation.emplace();
  const ModelParameters parameters = parameters_.Run(run.config.model, index);
  const size_t first = run.evaluation->batches;
  for (size_t next = first; next < run.held_out.size(); ++next) {
    if (next > first && stop()) return false;
    Evaluate(run.config.model, parameters, run.held_out[next], &*run.evaluation);
    ++run.progress.evaluated;
  }
  return true;
}

// The evaluation and the checkpoint of the run's step, and its end if that is here.
absl::Status TrainingStack::Report(int index) {
  StackRun& run = runs_[index];
  const uint32_t step = run.progress.step;
  if (CheckpointDue(run)) {
    absl::StatusOr<std::string> file = ExportCheckpoint(index);
    if (!file.ok()) return file.status();
    run.progress.checkpoints.push_back({step, *std::move(file)});
  }
  std::optional<double> loss;
  if (run.evaluation.has_value()) {
    const Evaluation evaluation = ResultOf(*run.evaluation);
    run.progress.points.push_back({"eval/loss", step, evaluation.loss});
    run.progress.points.push_back({"eval/accuracy", step, evaluation.accuracy});
    loss = evaluation.loss;
    run.evaluation.reset();
  }
  if (step == 0 && !run.diverging) run.first_evaluation = loss;
  if (EndDue(run)) run.progress.outcome = run.diverging ? Outcome::kDiverged : Verdict(run, loss);
  Append(run.progress.points, std::exchange(run.last_points, {}));
  if (run.diverging) run.batch.reset();
  run.visited = true;
  return absl::OkStatus();
}

void TrainingStack::Update() {
  const RunConfig& config = runs_.front().config;
  DrawBatches();
  const Pass pass = {.rule = config.training.rule, .training = true};
  const BatchGradient gradient = Differentiate(config.model, pass, JoinBatches(), parameters_);
  const std::vector<double> losses = OnHost(gradient.losses);
  const std::vector<double> norms = OnHost(gradient.norms);
  const std::vector<RunUpdate> updates = Updates(losses, norms);
  const auto active = [](const RunUpdate& update) { return update.active; };
  if (std::any_of(updates.begin(), updates.end(), active)) {
    if (config.training.clip > 0) {
      ClipGradients(parameters_.gradients(), gradient.norms, config.training.clip);
    }
    optimizer_.Step(updates, parameters_.values(), parameters_.gradients());
  }
  for (int index = 0; index < runs(); ++index) {
    StackRun& run = runs_[index];
    if (!run.batch.has_value()) continue;
    std::vector<Point> points = {{"train/loss", run.progress.step, losses[index]}};
    if (std::isfinite(losses[index])) {
      points.push_back({"train/gradient_norm", run.progress.step,
                        InPrecision(run.config.precision, norms[index])});
    }
    run.diverging = !updates[index].active;
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
}

void TrainingStack::DrawBatches() {
  for (StackRun& run : runs_) {
    if (!run.training() || run.batch.has_value()) continue;
    run.cursor = run.source->Cursor();
    run.batch = run.source->Next();
  }
}

// The runs' batches as one; a run that has ended borrows a neighbour's.
StackBatch TrainingStack::JoinBatches() const {
  const auto drawn = std::find_if(runs_.begin(), runs_.end(),
                                  [](const StackRun& run) { return run.batch.has_value(); });
  std::vector<const TokenBatch*> batches;
  for (const StackRun& run : runs_) {
    batches.push_back(run.batch.has_value() ? &*run.batch : &*drawn->batch);
  }
  return MakeStackBatch(batches, runs_.front().config.model.loss, options_);
}

// A gradient that is no number would make every parameter one: it ends its run as such a loss does.
std::vector<RunUpdate> TrainingStack::Updates(const std::vector<double>& losses,
                                              const std::vector<double>& norms) const {
  std::vector<RunUpdate> updates;
  for (int index = 0; index < runs(); ++index) {
    const StackRun& run = runs_[index];
    const TrainingConfig& training = run.config.training;
    RunUpdate update;
    update.active = run.training() && std::isfinite(losses[index]) && std::isfinite(norms[index]);
    update.step = run.progress.step;
    update.optimizer = training.optimizer;
    update.learning_rate = LearningRate(training.schedule, training.optimizer.learning_rate,
                                        update.step, training.steps);
    updates.push_back(update);
  }
  return updates;
}

RunProgress TrainingStack::TakeProgress(int index) {
  RunProgress& progress = runs_[index].progress;
  RunProgress next;
  next.outcome = progress.outcome;
  next.step = progress.step;
  return std::exchange(progress, std::move(next));
}

absl::StatusOr<std::string> TrainingStack::ExportState(int index) const {
  const StackRun& run = runs_[index];
  const auto row = [index](const at::Tensor& tensor) {
    return tensor[index].to(at::kCPU).contiguous();
  };
  ResumeState state;
  state.parameters = row(parameters_.values());
  for (const OptimizerSlot& slot : optimizer_.slots()) {
    state.slots.push_back({slot.name, row(slot.values)});
  }
  state.cursor = run.batch.has_value() ? run.cursor : run.source->Cursor();
  state.step = run.progress.step;
  state.outcome = run.progress.outcome;
  state.first_evaluation = run.first_evaluation;
  return WriteResumeState(run.config, parameters_.layout(), state);
}

absl::Status TrainingStack::ImportState(int index, absl::string_view file) {
  StackRun& run = runs_[index];
  const absl::StatusOr<ResumeState> state =
      ReadResumeState(run.config, parameters_.layout(), optimizer_.slots(), file);
  if (!state.ok()) return state.status();
  const absl::Status status = run.source->SetCursor(state->cursor);
  if (!status.ok()) return status;
  const at::NoGradGuard no_grad;
  parameters_.values()[index].copy_(state->parameters);
  for (size_t i = 0; i < state->slots.size(); ++i) {
    optimizer_.slots()[i].values[index].copy_(state->slots[i].values);
  }
  run.progress = {{}, {}, state->outcome, state->step};
  run.first_evaluation = state->first_evaluation;
  run.visited = false;
  run.evaluation.reset();
  run.diverging = false;
  run.last_points.clear();
  run.batch.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TrainingStack::ExportCheckpoint(int index) const {
  const StackRun& run = runs_[index];
  return WriteCheckpoint(run.config.model, parameters_.layout(), parameters_.values()[index],
                         run.progress.step, run.vocabulary);
}

}  // namespace ablate::engine
