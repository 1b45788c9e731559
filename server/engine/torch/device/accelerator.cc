// Loads the plugin of the device's code.
#include "server/engine/accelerator.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/torch/device/accelerator_parts.h"
#include "server/engine/torch/train/boundary.h"

namespace ablate::engine {

absl::StatusOr<std::shared_ptr<Accelerator>> OpenAccelerator(const std::string& plugin,
                                                             double memory_share) {
  // Never closed: LibTorch's device code stays registered until the process ends.
  void* const library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot load ", dlerror()));
  }
  auto* const open = reinterpret_cast<OpenDevice*>(dlsym(library, kOpenDevice));
  if (open == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(plugin, " is not a plugin of this program"));
  }
  return AtBoundary([&]() -> absl::StatusOr<std::shared_ptr<Accelerator>> {
    std::string why_not;
    std::shared_ptr<StreamSource> streams;
    open(memory_share, &streams, &why_not);
    if (streams == nullptr) return absl::FailedPreconditionError(why_not);
    return std::make_shared<Accelerator>(std::move(streams));
  });
}

AcceleratorInfo InfoOf(const Accelerator& accelerator) { return accelerator.streams().info(); }

absl::StatusOr<DeviceMemory> MemoryOf(Accelerator& accelerator) {
  return AtBoundary(
      [&]() -> absl::StatusOr<DeviceMemory> { return accelerator.streams().Memory(); });
}

void ReleaseMemory(Accelerator& accelerator) {
  AtBoundary([&] {
    accelerator.ended().Clear();
    accelerator.streams().ReleaseMemory();
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace ablate::engine
