// Runs a pass of the model family over whole sequences: every position is a column in every block.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_SEQUENCE_PASS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_SEQUENCE_PASS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/native/column_attention.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Computes losses and gradients of columns. Not thread-safe: it owns scratch memory.
class SequencePass {
 public:
  // Keeps references. `rule` forms the gradients.
  SequencePass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
               const Kernels& kernels);

  // Returns the loss of the columns and adds its gradient. BatchNorm uses the statistics of these
  // columns, and updates the running ones.
  LossSums AddGradient(const Model& model, const Columns& columns, const Objective& objective);

  // Returns the loss and the correct predictions, without gradients; also for prefix-shared
  // batches.
  LossSums Score(const Model& model, const Columns& columns);

  // Returns the logits of the next token where the loss reads, [V][columns], or
  // [V][RoundUp(sequences)] if it reads only last positions; valid until the next pass.
  const float* Logits(const Model& model, const Columns& columns);

 private:
  struct BlockMemory {
    SublayerMemory sublayer;  // around the attention
    AttentionMemory attention;
    Layers::FeedForwardMemory feed_forward;
  };

  void Prepare(const Columns& columns);
  void Embed(const Model& model, const Columns& columns);
  void EmbedBack(const Model& model, const Columns& columns);
  void RunBlocks(const Model& model, const Columns& columns);
  void Attend(const Block& block, int index, BlockMemory& memory);
  // `more` is added to the gradient of the attention's input; null: nothing.
  void AttendBack(const Block& block, int index, BlockMemory& memory, const float* more);
  // The same for a block with parallel sublayers.
  void RunParallel(const Block& block, int index, BlockMemory& memory);
  void ParallelBack(const Block& block, int index, BlockMemory& memory);
  // Returns the part of the stream that the loss reads: all of it, or the last positions side by
  // side.
  const float* Kept(const Columns& columns);
  ColumnGroup KeptGroup(const Columns& columns) const;
  // Copies kept_, as a gradient, to the columns it belongs to; all others get 0.
  void SpreadKept(const Columns& columns, float* d) const;

  const ModelConfig& config_;
  const PassSetting& pass_;
  const LearningRule rule_;
  const Kernels& kernels_;
  Layers layers_;
  ColumnAttention attention_;
  Head head_;
  PositionTable positions_;
  std::vector<BlockMemory> blocks_;

  // The current columns.
  ColumnGroup group_;
  Floats real_;
  std::vector<int64_t> element_;

  Floats rows_;    // [columns][width]
  Floats stream_;  // [width][columns]
  NormMemory embedding_norm_;
  Floats mask_;  // of the embeddings' dropout
  Floats kept_;  // [width][RoundUp(sequences)]
  Floats d_;     // the stream's gradient
  Floats room_;
  Floats dcontext_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_SEQUENCE_PASS_H_
