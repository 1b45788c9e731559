// Runs LibTorch's operations without autograd's dispatch layers.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_UNRECORDED_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_UNRECORDED_H_

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <optional>

namespace ablate::engine {

// While it exists, operations of its thread dispatch directly to the device's kernels unless grad
// mode is on; a view then costs about half. For code whose results autograd doesn't need or gets in
// another way, as from a Function.
class Unrecorded {
 public:
  Unrecorded() {
    if (!at::GradMode::is_enabled()) below_.emplace();
  }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_UNRECORDED_H_
