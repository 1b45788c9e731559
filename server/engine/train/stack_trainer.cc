// Checks what is asked to be trained, and drives a run loop for each part of it, whose backend is
// that of the trainer.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <limits>
#include <string>
#include <utility>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "absl/strings/str_cat.h"
#include "server/engine/layout.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/native/supports.h"
#include "server/engine/task.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/native_start.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

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
      {"model.residual_scale", model.residual_scale, 0, kInfinity},
      {"model.dropout", model.dropout, 0, 1},
      {"model.attention.score_bias", model.attention.score_bias, -kLargest, kInfinity},
      {"training.batch", double(run.training.batch), 1, kInfinity},
      {"training.accumulation", double(run.training.accumulation), 1, kInfinity},
      {"training.clip", run.training.clip, 0, kInfinity},
      {"training.label_smoothing", run.training.label_smoothing, 0, 1},
      {"training.ema", run.training.ema, 0, 1},
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
  if (Attends(model) && model.width % model.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.width is ", model.width, ", but must be divisible by model.heads, ", model.heads));
  }
  if (model.tied_head && model.head_bias) {
    return absl::InvalidArgumentError("model.head_bias is true, but a tied head has no bias");
  }
  const int size = HeadSize(model);
  if (Attends(model) && model.positions == Positions::kRotary && size % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("model.positions is rotary, but a head has ",
                                                   size,
                                                   " features, which can't be turned in pairs"));
  }
  if (!HasDeviation(model.norm)) {
    return absl::InvalidArgumentError(absl::StrCat("model.norm.deviation is ",
                                                   NameOf(model.norm.deviation),
                                                   ", which only layer has, with exact backward"));
  }
  if (!HasBackward(model.norm)) {
    return absl::InvalidArgumentError(absl::StrCat("model.norm.backward is ",
                                                   NameOf(model.norm.backward), ", which ",
                                                   NameOf(model.norm.kind), " does not have"));
  }
  if (model.norm.deviation == NormDeviation::kUnbiasedEpsOutside && model.width == 1) {
    return absl::InvalidArgumentError(
        "model.width is 1, but one feature has no unbiased deviation");
  }
  return absl::OkStatus();
}

absl::Status CheckTraining(const TrainingConfig& training) {
  if (training.batch % training.accumulation == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("training.batch is ", training.batch,
                   ", but must be divisible by training.accumulation, ", training.accumulation));
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

// A BatchNorm divides by the deviation of the positions of a part of a batch.
absl::Status CheckStatistics(const RunConfig& run) {
  const bool one_row = run.training.batch == run.training.accumulation;
  if (run.model.norm.kind != NormKind::kBatch || run.model.context > 1 || !one_row) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "model.norm.kind is batch, but a batch of one position in all has no variance");
}

absl::Status CheckDevice(const RunConfig& run, bool has_cuda) {
  if (run.training.trainer == TrainerKind::kNative) {
    const std::string why_not = WhyNotNative(run);
    if (why_not.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("training.trainer is native, but ", why_not));
  }
  if (run.device == Device::kCuda && !has_cuda) {
    return absl::InvalidArgumentError("device is cuda, but this worker has no CUDA device");
  }
  return absl::OkStatus();
}

// Without what the runs of a stack may differ in.
TrainingConfig Shared(TrainingConfig training) {
  training.optimizer = {.kind = training.optimizer.kind,
                        .weight_decay_on = training.optimizer.weight_decay_on};
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

// INVALID_ARGUMENT naming the field, its value and what is allowed, if a run of the stack can't be
// trained or differs from the first in more than seed and optimizer numbers. Before anything is
// allocated.
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
    if (status.ok()) status = CheckTraining(run.training);
    if (status.ok() && i == 0) status = CheckTask(run);
    if (status.ok()) status = CheckStatistics(run);
    if (status.ok()) status = CheckDevice(run, has_cuda);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

using Stacks = std::vector<std::unique_ptr<RunLoop>>;

class StackTrainer : public Trainer {
 public:
  explicit StackTrainer(Stacks stacks) : stacks_(std::move(stacks)) {
    for (const auto& stack : stacks_) {
      for (int run = 0; run < stack->runs(); ++run) places_.push_back({stack.get(), run});
    }
  }

  absl::StatusOr<std::vector<RunProgress>> Advance(uint32_t steps,
                                                   absl::FunctionRef<bool()> stop) override {
    return AtBoundary([&]() -> absl::StatusOr<std::vector<RunProgress>> {
      bool training = true;
      for (uint32_t step = 0; step < steps && training && !stop(); ++step) {
        training = false;
        for (const auto& stack : stacks_) {
          const absl::StatusOr<bool> stepped = stack->Step(stop);
          if (!stepped.ok()) return stepped.status();
          training = training || *stepped;
        }
      }
      std::vector<RunProgress> progress;
      for (const Place& place : places_) progress.push_back(place.stack->TakeProgress(place.run));
      return progress;
    });
  }

  absl::StatusOr<std::string> ExportState(int run) override {
    return At<absl::StatusOr<std::string>>(
        run, [](const Place& place) { return place.stack->ExportState(place.run); });
  }

  absl::Status ImportState(int run, absl::string_view state) override {
    return At<absl::Status>(
        run, [state](const Place& place) { return place.stack->ImportState(place.run, state); });
  }

  absl::StatusOr<std::string> ExportCheckpoint(int run) override {
    return At<absl::StatusOr<std::string>>(
        run, [](const Place& place) { return place.stack->ExportCheckpoint(place.run); });
  }

 private:
  // Where a run of the caller's stack lives.
  struct Place {
    RunLoop* stack;
    int run;
  };

  template <typename Result, typename Function>
  Result At(int run, const Function& function) {
    if (run < 0 || run >= static_cast<int>(places_.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", run, " is not in 0…", places_.size() - 1));
    }
    return AtBoundary([&]() -> Result { return function(places_[run]); });
  }

  Stacks stacks_;
  std::vector<Place> places_;
};

// On a GPU the runs share every kernel launch. On a CPU that gains nothing, and each for itself a
// run keeps its parameters in the cache and cannot depend on its neighbours by a single bit.
std::vector<std::vector<RunConfig>> Partition(const std::vector<RunConfig>& stack) {
  if (stack.front().device == Device::kCuda) return {stack};
  std::vector<std::vector<RunConfig>> single;
  for (const RunConfig& run : stack) single.push_back({run});
  return single;
}

BackendFactory* FactoryOf(const RunConfig& run) {
  switch (run.training.trainer) {
    case TrainerKind::kTorch:
      return MakeTorchBackend;
    case TrainerKind::kNative:
      return MakeNativeBackend;
  }
  return nullptr;
}

// LibTorch's BLAS has kernels of its own for each.
absl::string_view CpuMaker() {
#ifdef __x86_64__
  if (__builtin_cpu_is("intel") != 0) return "Intel";
  if (__builtin_cpu_is("amd") != 0) return "AMD";
#endif
  return "other";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(const std::vector<RunConfig>& stack) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Trainer>> {
    const absl::Status status = CheckStack(stack, at::hasCUDA());
    if (!status.ok()) return status;
    Stacks stacks;
    for (const std::vector<RunConfig>& part : Partition(stack)) {
      absl::StatusOr<std::unique_ptr<RunLoop>> made = RunLoop::Make(part, FactoryOf(stack.front()));
      if (!made.ok()) return made.status();
      stacks.push_back(*std::move(made));
    }
    return std::make_unique<StackTrainer>(std::move(stacks));
  });
}

std::string TorchVersion() { return TORCH_VERSION; }

std::string Environment(TrainerKind trainer) {
  if (trainer == TrainerKind::kNative) return native::Environment(native::BestKernels());
  return absl::StrCat("torch ", TORCH_VERSION, ", ", at::get_cpu_capability(), " (", CpuMaker(),
                      ")");
}

void PrepareLaneThread() {
  at::set_num_threads(1);
#ifdef __GLIBC__
  // A step allocates and frees the same activations again and again: returning them to the system
  // in between costs 5 % (width 128) to 15 % (recall) of it in page faults.
  constexpr int kMaxThreshold = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kMaxThreshold);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace ablate::engine
