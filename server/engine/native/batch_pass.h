// A pass over a batch by whichever way the model has.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_BATCH_PASS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_BATCH_PASS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"
#include "server/engine/native/query_pass.h"
#include "server/engine/native/sequence_pass.h"

namespace ablate::engine::native {

// Not thread-safe: it has room for what it works on. std::bad_alloc where there is none.
class BatchPass {
 public:
  // References are kept. `rule` is what gradients are formed by.
  BatchPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
            const Kernels& kernels);

  // Adds the gradient of the mean loss over the batch's targets, of which it must have one, and
  // returns that loss; in `parts` of as many rows each, whose batch statistics are their own.
  double AddGradient(const Model& model, const TokenBatch& batch, double smoothing = 0,
                     int64_t parts = 1);

  // The loss and what is hit over all rows, without gradients. `strips` is of a batch that is
  // scored again and again: empty at first, it keeps what the batch is cut into where that is
  // strips.
  LossSums Score(const Model& model, const TokenBatch& batch,
                 std::vector<Columns>* strips = nullptr);

 private:
  template <typename Function>
  LossSums ForEach(const TokenBatch& batch, int64_t first, int64_t count, int64_t together,
                   const Function& function);

  const ModelConfig& config_;
  std::optional<SequencePass> sequence_;
  std::optional<QueryPass> query_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_BATCH_PASS_H_
