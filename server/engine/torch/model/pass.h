// Defines the arguments of a forward pass other than model and batch, and its hooks (`Hook`), by
// which analyses observe and change activations.
#ifndef ABLATE_SERVER_ENGINE_TORCH_MODEL_PASS_H_
#define ABLATE_SERVER_ENGINE_TORCH_MODEL_PASS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/core/hook_points.h"

namespace ablate::engine {

// A hook: receives the activation at a hook point (`HookPoint`) and returns its replacement, of the
// same shape and type.
using Hook = std::function<at::Tensor(const at::Tensor&)>;

Hook Observe(std::function<void(const at::Tensor&)> observer);
Hook Replace(at::Tensor value);
Hook Add(at::Tensor value);

// Hooks by hook point; several at one point run in order. Immutable.
class Hooks {
 public:
  // Returns INVALID_ARGUMENT if the model has no hook point of a name.
  static absl::StatusOr<Hooks> Make(const ModelConfig& model,
                                    std::vector<std::pair<std::string, Hook>> hooks);

  // Returns the activation after the hooks of a hook point; `block` is 0 if it isn't in a block.
  // Throws c10::Error if a hook changes shape or type.
  at::Tensor Apply(HookPoint hook_point, int block, const at::Tensor& x) const;

 private:
  std::map<std::pair<HookPoint, int>, std::vector<Hook>> hooks_;
};

// Selects the statistics that BatchNorm uses.
enum class Statistics {
  kRunning,        // those kept by training
  kBatch,          // those of the batch
  kBatchAndTrack,  // those of the batch; the running ones are updated
};

// Dropout of an update. Its masks depend on the run's seed, the step, the hook point and the
// element.
struct Dropout {
  double rate = 0;  // fraction that is dropped, in [0, 1)
  uint32_t seed = 0;
  uint32_t step = 0;      // updates made before this one
  int64_t first_row = 0;  // index of the batch's first row in the update, if it is a micro-batch
  at::Tensor device_step = {};  // [1], int64: takes the place of `step` in a captured graph, which
                                // can't read a number of the host
};

// Arguments of a pass. The default is an evaluation with exact derivatives, independent of the
// training rule.
struct Pass {
  LearningRule rule = LearningRule::kBackprop;
  NormBackward norm_backward = NormBackward::kExact;
  Statistics statistics = Statistics::kRunning;
  const Dropout* dropout = nullptr;  // null: no dropout
  const Hooks* hooks = nullptr;      // null: no hooks; an empty one gives the same bits
  // True if the pass is differentiated at most once: a device may use kernels without a second
  // derivative.
  bool once = false;
  // Type of the factors of matrix products, if it isn't the parameters' own. Needs `once`.
  std::optional<at::ScalarType> factors = {};
};

// The arguments of a pass for one of its blocks.
struct BlockPass {
  const Pass& pass;
  int block = 0;

  LearningRule rule() const { return pass.rule; }
  std::optional<at::ScalarType> factors() const { return pass.factors; }
  at::Tensor At(HookPoint hook_point, const at::Tensor& x) const {
    return pass.hooks == nullptr ? x : pass.hooks->Apply(hook_point, block, x);
  }
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TORCH_MODEL_PASS_H_
