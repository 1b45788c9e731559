// Runs LibTorch's operations without autograd's layers.
#ifndef ABLATE_SERVER_ENGINE_MODEL_UNRECORDED_H_
#define ABLATE_SERVER_ENGINE_MODEL_UNRECORDED_H_

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <optional>

namespace ablate::engine {

// While it lives, operations of its thread go straight to the device's kernels, unless autograd
// records: a view then costs about half as much. For code whose results autograd learns of in
// another way, as from a Function, or not at all.
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

#endif  // ABLATE_SERVER_ENGINE_MODEL_UNRECORDED_H_
