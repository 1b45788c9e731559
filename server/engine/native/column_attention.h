// Computes the attention of a block on columns: over sequences side by side, over prefix-shared
// batches, or over the key-value cache of growing sequences.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_COLUMN_ATTENTION_H_
#define ABLATE_SERVER_ENGINE_NATIVE_COLUMN_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"

namespace ablate::engine::native {

// Working memory of a block's attention, kept for the backward pass.
struct AttentionMemory {
  Floats qkv;    // [width + 2·KvWidth][columns]; queries and keys normalised and rotated
  Floats heads;  // [3·width][columns], the same with repeated keys and values, if they are shared
  std::vector<NormMemory> query_norms;  // one per head, or one of all
  std::vector<NormMemory> key_norms;
  Floats weights;  // by sequence and head, laid out as in kernels.h
  Floats mask;
  Floats dropped;
  Floats context;  // [width][columns]
};

// Computes attention forward and backward. Not thread-safe: it owns scratch memory.
class ColumnAttention {
 public:
  // Keeps the reference.
  explicit ColumnAttention(const Layers& layers);

  // Sets the columns of the following calls; keeps a reference to them.
  void Prepare(const Columns& columns);

  // Computes memory.context from memory.qkv, the output of the block's linear. `index` is the
  // block's.
  void Forward(const Block& block, int index, AttentionMemory& memory);

  // Returns the gradient of the linear's output, [width + 2·KvWidth][columns], given the gradient
  // of the context; for sequences only. Valid until the next call.
  float* Back(const Block& block, int index, AttentionMemory& memory, const float* dcontext);

 private:
  // Returns the parameters of a head for `length` positions.
  AttentionHead Head(int length) const;
  Attention HeadOf(const Sequence& sequence, int64_t weights, AttentionMemory& memory,
                   int head) const;
  void AttendToSequences(int block, AttentionMemory& memory);
  void AttendToPrefixBatch(const PrefixBatch& batch, AttentionMemory& memory);
  void AttendToPast(int block, AttentionMemory& memory);
  void FillMasks(int block, AttentionMemory& memory) const;
  void FillTurns();
  void Turn(int block, float* qkv, bool back) const;
  bool NormsBeforeTurn() const;
  // Normalises queries and keys [width + KvWidth][columns] in place, and back.
  void NormHeads(const Block& block, AttentionMemory& memory) const;
  void NormHeadsBack(const Block& block, const AttentionMemory& memory, float* d) const;
  void RepeatHeads(AttentionMemory& memory) const;
  // Returns the sums of a gradient over the heads that share keys and values.
  float* SumHeads(const float* dheads);
  // Returns queries, keys and values of all heads, [3·width][columns].
  const float* HeadsOf(const AttentionMemory& memory) const;
  // Sets columns that hold no token to 0.
  void Clear(float* x, int rows) const;

  const Layers& layers_;
  const ModelConfig& config_;
  const Kernels& kernels_;
  const int size_;  // features of a head
  const int kv_heads_;
  const int pairs_;  // of features that are rotated
  Floats turns_;     // [context][2·pairs] cosines, then sines, for rotary positions
  Floats cosine_;    // [pairs][columns]
  Floats sine_;      // [pairs][columns]
  const Columns* columns_ = nullptr;
  std::vector<int64_t> weights_at_;  // by sequence, offset of its first head's weights
  int64_t weights_size_ = 0;
  Floats dqkv_;
  Floats dshared_;
  Floats scratch_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_COLUMN_ATTENTION_H_
