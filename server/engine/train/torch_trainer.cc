#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <limits>
#include <utility>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "absl/strings/str_cat.h"
#include "server/engine/train/boundary.h"
#include "server/engine/train/run_loop.h"
#include "server/engine/train/torch_backend.h"
#include "server/engine/train/validate.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

using Stacks = std::vector<std::unique_ptr<RunLoop>>;

class TorchTrainer : public Trainer {
 public:
  explicit TorchTrainer(Stacks stacks) : stacks_(std::move(stacks)) {
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

// LibTorch's BLAS has kernels of its own for each.
absl::string_view CpuMaker() {
#ifdef __x86_64__
  if (__builtin_cpu_is("intel") != 0) return "Intel";
  if (__builtin_cpu_is("amd") != 0) return "AMD";
#endif
  return "other";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> MakeTorchTrainer(const std::vector<RunConfig>& stack) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Trainer>> {
    const absl::Status status = CheckStack(stack, at::hasCUDA());
    if (!status.ok()) return status;
    Stacks stacks;
    for (const std::vector<RunConfig>& part : Partition(stack)) {
      absl::StatusOr<std::unique_ptr<RunLoop>> made = RunLoop::Make(part, MakeTorchBackend);
      if (!made.ok()) return made.status();
      stacks.push_back(*std::move(made));
    }
    return std::make_unique<TorchTrainer>(std::move(stacks));
  });
}

std::string TorchVersion() { return TORCH_VERSION; }

std::string Environment() {
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
