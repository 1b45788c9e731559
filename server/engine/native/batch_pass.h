// Runs a pass over a batch, by sequences or by last positions only, whichever the model allows.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_BATCH_PASS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_BATCH_PASS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/native/absorbed_pass.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"
#include "server/engine/native/sequence_pass.h"

namespace ablate::engine::native {

// Computes losses and gradients of batches. Not thread-safe: it owns scratch memory. Throws
// std::bad_alloc if out of memory.
class BatchPass {
 public:
  // Keeps references. `rule` forms the gradients.
  BatchPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
            const Kernels& kernels);

  // Adds the gradient of the mean loss over the batch's targets, at least one, and returns that
  // loss. Computes the batch in `micro_batches` parts with equally many rows; each has its own
  // batch statistics.
  double AddGradient(const Model& model, const TokenBatch& batch, double smoothing = 0,
                     double z_loss = 0, int64_t micro_batches = 1);

  // Returns the loss and the correct predictions over all rows, without gradients. `prefix_batches`
  // is a cache for a batch that is scored repeatedly: initially empty, it keeps the batch's
  // prefix-shared groups if there are any.
  LossSums Score(const Model& model, const TokenBatch& batch,
                 std::vector<Columns>* prefix_batches = nullptr);

 private:
  template <typename Function>
  LossSums ForEach(const TokenBatch& batch, int64_t first, int64_t count, int64_t together,
                   const Function& function);

  const ModelConfig& config_;
  std::optional<SequencePass> sequence_;
  std::optional<AbsorbedPass> absorbed_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_BATCH_PASS_H_
