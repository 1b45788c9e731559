#include "server/engine/train/validate.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/engine/task.h"

namespace ablate::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A number's field path, value, and the range [low, high) that it must be in.
struct Range {
  const char* field;
  double value;
  double low;
  double high;
};

absl::Status CheckRange(const Range& range) {
  if (range.value >= range.low && range.value < range.high) return absl::OkStatus();
  std::string allowed = absl::StrCat("at least ", range.low);
  if (range.high < kInfinity) absl::StrAppend(&allowed, " and below ", range.high);
  return absl::InvalidArgumentError(absl::StrCat(range.field, " is ", range.value, ", but must be ",
                                                 range.high < kInfinity ? "" : "finite and ",
                                                 allowed));
}

absl::Status CheckRanges(const RunConfig& run) {
  const ModelConfig& model = run.model;
  const OptimizerConfig& optimizer = run.training.optimizer;
  const Range ranges[] = {
      {"model.vocabulary", double(model.vocabulary), 1, kInfinity},
      {"model.layers", double(model.layers), 1, kInfinity},
      {"model.width", double(model.width), 1, kInfinity},
      {"model.heads", double(model.heads), 1, kInfinity},
      {"model.context", double(model.context), 1, kInfinity},
      {"model.hidden", double(model.hidden), 1, kInfinity},
      {"model.norm.eps", model.norm.eps, 0, kInfinity},
      {"training.batch", double(run.training.batch), 1, kInfinity},
      {"training.clip", run.training.clip, 0, kInfinity},
      {"training.optimizer.learning_rate", optimizer.learning_rate, 0, kInfinity},
      {"training.optimizer.beta1", optimizer.beta1, 0, 1},
      {"training.optimizer.beta2", optimizer.beta2, 0, 1},
      {"training.optimizer.eps", optimizer.eps, 0, kInfinity},
      {"training.optimizer.momentum", optimizer.momentum, 0, kInfinity},
      {"training.optimizer.weight_decay", optimizer.weight_decay, 0, kInfinity},
      {"evaluation.every", double(run.evaluation.every), 1, kInfinity},
  };
  for (const Range& range : ranges) {
    const absl::Status status = CheckRange(range);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const ModelConfig& model) {
  if (model.width % model.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.width is ", model.width, ", but must be divisible by model.heads, ", model.heads));
  }
  if (model.tied_head && model.head_bias) {
    return absl::InvalidArgumentError("model.head_bias is true, but a tied head has no bias");
  }
  return absl::OkStatus();
}

absl::Status CheckTask(const RunConfig& run) {
  const absl::StatusOr<TaskShape> shape = KindOf(run.task).shape(run.task);
  if (!shape.ok()) return shape.status();
  if (run.model.vocabulary != shape->vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("model.vocabulary is ", run.model.vocabulary,
                                                   ", but the task has ", shape->vocabulary,
                                                   " tokens"));
  }
  if (run.model.context < shape->sequence) {
    return absl::InvalidArgumentError(absl::StrCat("model.context is ", run.model.context,
                                                   ", but the task's sequences have ",
                                                   shape->sequence, " tokens"));
  }
  if (run.model.loss != shape->loss) {
    return absl::InvalidArgumentError("model.loss is not the task's");
  }
  return absl::OkStatus();
}

absl::Status CheckDevice(const RunConfig& run, bool has_cuda) {
  if (run.device == Device::kCuda && !has_cuda) {
    return absl::InvalidArgumentError("device is cuda, but this worker has no CUDA device");
  }
  return absl::OkStatus();
}

// Without what the runs of a stack may differ in.
TrainingConfig Shared(TrainingConfig training) {
  training.optimizer = {.kind = training.optimizer.kind};
  return training;
}

// The part of a run in which `b` differs from `a`, or null.
const char* Difference(const RunConfig& a, const RunConfig& b) {
  if (a.task != b.task) return "task";
  if (a.model != b.model) return "model";
  if (Shared(a.training) != Shared(b.training)) return "training";
  if (a.evaluation != b.evaluation) return "evaluation";
  if (a.device != b.device) return "device";
  return a.precision == b.precision ? nullptr : "precision";
}

}  // namespace

absl::Status CheckStack(const std::vector<RunConfig>& stack, bool has_cuda) {
  if (stack.empty()) return absl::InvalidArgumentError("the stack has no run");
  for (size_t i = 0; i < stack.size(); ++i) {
    const RunConfig& run = stack[i];
    const char* difference = i == 0 ? nullptr : Difference(stack.front(), run);
    if (difference != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", i, " of the stack differs from run 0 in ", difference,
                       ": only seeds and optimizer numbers may differ"));
    }
    absl::Status status = CheckRanges(run);
    if (status.ok()) status = CheckModel(run.model);
    if (status.ok() && i == 0) status = CheckTask(run);
    if (status.ok()) status = CheckDevice(run, has_cuda);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ablate::engine
