// A step of a stack: what is due before the update, the update, and the ends of runs.
#include "server/engine/train/stack.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/engine/model/init.h"
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

bool CheckpointDue(const TrainingConfig& training, uint32_t step) {
  return ListsStep(training.checkpoints, step) ||
         (training.final_checkpoint && step == training.steps);
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
    absl::StatusOr<std::string> vocabulary = VocabularyJson(config.task);
    if (!vocabulary.ok()) return vocabulary.status();
    StackRun run;
    run.config = config;
    run.source = *std::move(source);
    run.vocabulary = *std::move(vocabulary);
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

absl::StatusOr<bool> TrainingStack::Step() {
  for (int run = 0; run < runs(); ++run) {
    const absl::Status status = Visit(run);
    if (!status.ok()) return status;
  }
  const auto training = [](const StackRun& run) { return run.training(); };
  if (std::none_of(runs_.begin(), runs_.end(), training)) return false;
  absl::Status status = Update();
  for (int run = 0; run < runs() && status.ok(); ++run) {
    const bool end = runs_[run].progress.step == runs_[run].config.training.steps;
    if (end) status = Visit(run);
  }
  if (!status.ok()) return status;
  return true;
}

// The evaluation and the checkpoint of the run's step, and its end if that is the last one.
absl::Status TrainingStack::Visit(int index) {
  StackRun& run = runs_[index];
  if (!run.training() || run.visited) return absl::OkStatus();
  const uint32_t step = run.progress.step;
  const bool end = step == run.config.training.steps;
  const bool evaluate = end || step % run.config.evaluation.every == 0;
  absl::StatusOr<Findings> findings =
      Look(index, evaluate, CheckpointDue(run.config.training, step));
  if (!findings.ok()) return findings.status();
  if (step == 0) run.first_evaluation = findings->loss;
  Append(run.progress.points, std::move(findings->points));
  Append(run.progress.checkpoints, std::move(findings->checkpoints));
  if (end) run.progress.outcome = Verdict(run, findings->loss);
  run.visited = true;
  return absl::OkStatus();
}

absl::StatusOr<TrainingStack::Findings> TrainingStack::Look(int index, bool evaluate,
                                                            bool checkpoint) {
  StackRun& run = runs_[index];
  const uint32_t step = run.progress.step;
  Findings findings;
  if (evaluate && run.held_out.empty()) {
    for (const TokenBatch& batch : run.source->HeldOut()) {
      run.held_out.push_back(MakeStackBatch({&batch}, run.config.model.loss, options_));
    }
  }
  if (evaluate && !run.held_out.empty()) {
    const Evaluation evaluation =
        Evaluate(run.config.model, parameters_.Run(run.config.model, index), run.held_out);
    findings.points = {{"eval/loss", step, evaluation.loss},
                       {"eval/accuracy", step, evaluation.accuracy}};
    findings.loss = evaluation.loss;
  }
  if (checkpoint) {
    absl::StatusOr<std::string> file = ExportCheckpoint(index);
    if (!file.ok()) return file.status();
    findings.checkpoints.push_back({step, *std::move(file)});
  }
  return findings;
}

absl::Status TrainingStack::Update() {
  const RunConfig& config = runs_.front().config;
  DrawBatches();
  const BatchGradient gradient =
      Differentiate(config.model, config.training.rule, JoinBatches(), parameters_);
  const std::vector<double> losses = OnHost(gradient.losses);
  const std::vector<double> norms = OnHost(gradient.norms);
  const std::vector<RunUpdate> updates = Updates(losses, norms);
  for (int run = 0; run < runs(); ++run) {
    if (!runs_[run].training() || updates[run].active) continue;
    const absl::Status status = ConcludeDiverged(run);
    if (!status.ok()) return status;
  }
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
    run.progress.points.push_back({"train/loss", run.progress.step, losses[index]});
    if (std::isfinite(losses[index])) {
      run.progress.points.push_back({"train/gradient_norm", run.progress.step,
                                     InPrecision(run.config.precision, norms[index])});
    }
    const uint64_t tokens = run.batch->tokens();
    run.batch.reset();
    if (!updates[index].active) continue;
    run.progress.tokens += tokens;
    ++run.progress.step;
    run.visited = false;
  }
  return absl::OkStatus();
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

// Ends a run whose training loss or gradient is no number where it stands, with the evaluation and
// the checkpoint of an end unless they were made there already.
absl::Status TrainingStack::ConcludeDiverged(int index) {
  StackRun& run = runs_[index];
  const uint32_t step = run.progress.step;
  const bool evaluated = step % run.config.evaluation.every == 0;
  const bool checkpointed = CheckpointDue(run.config.training, step);
  absl::StatusOr<Findings> findings =
      Look(index, !evaluated, run.config.training.final_checkpoint && !checkpointed);
  if (!findings.ok()) return findings.status();
  Append(run.progress.points, std::move(findings->points));
  Append(run.progress.checkpoints, std::move(findings->checkpoints));
  run.progress.outcome = Outcome::kDiverged;
  return absl::OkStatus();
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
  run.batch.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TrainingStack::ExportCheckpoint(int index) const {
  const StackRun& run = runs_[index];
  return WriteCheckpoint(run.config.model, parameters_.layout(), parameters_.values()[index],
                         run.progress.step, run.vocabulary);
}

}  // namespace ablate::engine
