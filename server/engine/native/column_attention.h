// Computes the attention of a block on columns: over sequences side by side, over prefix-shared
// batches (strips), or over the key-value cache of growing sequences.
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
  Floats qkv;      // [3·width][columns]; queries and keys after rotation
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

  // Computes memory.context from memory.qkv, the output of the block's linear.
  void Forward(int block, AttentionMemory& memory);

  // Returns the gradient of the linear's output, [3·width][columns], given the gradient of the
  // context; for sequences only. Valid until the next call.
  float* Back(AttentionMemory& memory, const float* dcontext);

 private:
  // Returns the parameters of a head for `length` positions.
  AttentionHead Head(int length) const;
  Attention HeadOf(const Sequence& sequence, int64_t weights, AttentionMemory& memory,
                   int head) const;
  void AttendToSequences(int block, AttentionMemory& memory);
  void AttendToStrip(const Strip& strip, AttentionMemory& memory);
  void AttendToPast(int block, AttentionMemory& memory);
  void FillMasks(int block, AttentionMemory& memory) const;
  void FillTurns();
  void Turn(float* qkv, bool back) const;
  // Sets columns that hold no token to 0.
  void Clear(float* x, int rows) const;

  const Layers& layers_;
  const ModelConfig& config_;
  const Kernels& kernels_;
  const int size_;  // features of a head
  Floats turns_;    // [context][2·half] cosines, then sines, for rotary positions
  Floats cosine_;   // [half][columns]
  Floats sine_;     // [half][columns]
  const Columns* columns_ = nullptr;
  std::vector<int64_t> weights_at_;  // by sequence, offset of its first head's weights
  int64_t weights_size_ = 0;
  Floats dqkv_;
  Floats scratch_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_COLUMN_ATTENTION_H_
