// Creates the trainer of a run, and configures LibTorch for a process and its threads.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/supports.h"
#include "server/engine/names.h"
#include "server/engine/native/native_backend.h"
#include "server/engine/task.h"
#include "server/engine/torch/device/accelerator_parts.h"
#include "server/engine/torch/train/boundary.h"
#include "server/engine/torch/train/native_start.h"
#include "server/engine/torch/train/run_loop.h"
#include "server/engine/torch/train/torch_backend.h"
#include "server/engine/torch/train/torch_memory.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

// Checks the task, because a backend indexes memory by the tokens of its batches. The server checks
// the ranges of numbers.
absl::Status CheckTask(const RunConfig& run) {
  ASSIGN_OR_RETURN(const TaskShape shape, KindOf(run.task).shape(run.task));
  const bool fits = run.model.vocabulary >= shape.vocabulary &&
                    run.model.context >= shape.sequence && run.model.loss == shape.loss;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError("model: its vocabulary, context or loss is not the task's");
}

absl::Status CheckDevice(const RunConfig& run, const Accelerator* accelerator) {
  if (run.training.trainer == TrainerKind::kNative) {
    const std::string why_not = WhyNotNative(run);
    if (why_not.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("training.trainer is native, but ", why_not));
  }
  if (run.precision == Precision::kTf32 && run.device == Device::kCpu) {
    return absl::InvalidArgumentError("precision is tf32, but a CPU has no such products");
  }
  if (run.device == Device::kCuda && accelerator == nullptr) {
    return absl::InvalidArgumentError("device is cuda, but this worker has no CUDA device");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const RunConfig& run,
                                                     Accelerator* accelerator) {
  if (run.training.trainer == TrainerKind::kNative) return MakeNativeBackend(run);
  if (run.device == Device::kCpu) return MakeTorchBackend(run);
  return MakeDeviceBackend(run, Environment(run.training.trainer, accelerator),
                           accelerator->streams(), accelerator->ended());
}

// Returns the processor's instructions for products of bfloat16, with a comma; "" if it has none.
std::string Bfloat16Instructions() {
#ifdef __x86_64__
  constexpr unsigned kExtended = 7, kAmx = 1 << 22, kAvx512 = 1 << 5;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(kExtended, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmx) != 0) {
    return ", AMX";
  }
  if (__get_cpuid_count(kExtended, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvx512) != 0) {
    return ", AVX512-BF16";
  }
#endif
  return "";
}

// LibTorch's BLAS has separate kernels for each.
absl::string_view CpuMaker() {
#ifdef __x86_64__
  if (__builtin_cpu_is("intel") != 0) return "Intel";
  if (__builtin_cpu_is("amd") != 0) return "AMD";
#endif
  return "other";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(
    const RunConfig& run, const std::shared_ptr<Accelerator>& accelerator) {
  return AtBoundary([&]() -> absl::StatusOr<std::unique_ptr<Trainer>> {
    absl::Status status = CheckTask(run);
    if (status.ok()) status = CheckDevice(run, accelerator.get());
    if (!status.ok()) return status;
    return RunLoop::Make(
        run, [&](const RunConfig& config) { return MakeBackend(config, accelerator.get()); });
  });
}

std::string TorchVersion() { return TORCH_VERSION; }

std::string TorchPython() {
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &library) == 0) return "";
  std::error_code error;
  // VENV/lib/python3.N/site-packages/torch/lib/libtorch_cpu.so
  std::filesystem::path folder = std::filesystem::canonical(library.dli_fname, error);
  for (int level = 0; level < 6; ++level) folder = folder.parent_path();
  const std::filesystem::path python = folder / "bin" / "python3";
  return !error && std::filesystem::exists(python, error) ? python.string() : "";
}

std::string Environment(TrainerKind trainer, const Accelerator* accelerator) {
  if (trainer == TrainerKind::kNative) return native::Environment(native::BestKernels());
  if (accelerator != nullptr) {
    return absl::StrCat("torch ", TORCH_VERSION, ", ", InfoOf(*accelerator).name);
  }
  return absl::StrCat("torch ", TORCH_VERSION, ", ", at::get_cpu_capability(), " (", CpuMaker(),
                      Bfloat16Instructions(), ")");
}

void PrepareLaneThread() {
  // The first question of a thread sets its number to that which another thread set last.
  (void)at::get_num_threads();
  at::set_num_threads(1);
#ifdef __GLIBC__
  // A step repeatedly allocates and frees the same activations. Returning them to the system in
  // between costs page faults: 5 % (width 128) to 15 % (recall) of a step.
  constexpr int kMaxThreshold = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kMaxThreshold);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
  KeepLargeBlocks();
}

}  // namespace ablate::engine
