// What a forward pass is given beside its model and its batch, and the taps on its way: the one
// mechanism by which analyses look into a model and change what flows through it.
#ifndef ABLATE_SERVER_ENGINE_MODEL_PASS_H_
#define ABLATE_SERVER_ENGINE_MODEL_PASS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/config.h"
#include "server/engine/model/sites.h"

namespace ablate::engine {

// Given what comes to a site, returns what goes on from it: of the same shape and type.
using Tap = std::function<at::Tensor(const at::Tensor&)>;

Tap Observe(std::function<void(const at::Tensor&)> observer);
Tap Replace(at::Tensor value);
Tap Add(at::Tensor value);

// Taps by site; several of one site act in their order. Not changed once made.
class Taps {
 public:
  // INVALID_ARGUMENT if the model has no site of a name.
  static absl::StatusOr<Taps> Make(const ModelConfig& model,
                                   std::vector<std::pair<std::string, Tap>> taps);

  // What goes on from a site; `block` is 0 where a site is in none. Throws c10::Error if a tap
  // changes shape or type.
  at::Tensor Apply(Site site, int block, const at::Tensor& x) const;

 private:
  std::map<std::pair<Site, int>, std::vector<Tap>> taps_;
};

// Which statistics a BatchNorm standardises by.
enum class Statistics {
  kRunning,        // those that training has kept
  kBatch,          // those of the batch
  kBatchAndTrack,  // those of the batch, and the running ones move towards them
};

// Dropout of an update: its masks are a function of its run's seed, the step, the site and the
// element.
struct Dropout {
  double rate = 0;  // share that is left out, in [0, 1)
  uint32_t seed = 0;
  uint32_t step = 0;      // updates made before this one
  int64_t first_row = 0;  // of the update's rows, where the batch is a part of them
};

// By default an evaluation, whose derivatives are exact whatever the model is trained with.
struct Pass {
  LearningRule rule = LearningRule::kBackprop;
  NormBackward norm_backward = NormBackward::kExact;
  Statistics statistics = Statistics::kRunning;
  const Dropout* dropout = nullptr;  // null: nothing is left out
  const Taps* taps = nullptr;        // null: none; the bits are those without
};

// The pass as one of its blocks sees it.
struct BlockPass {
  const Pass& pass;
  int block = 0;

  LearningRule rule() const { return pass.rule; }
  at::Tensor At(Site site, const at::Tensor& x) const {
    return pass.taps == nullptr ? x : pass.taps->Apply(site, block, x);
  }
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_PASS_H_
