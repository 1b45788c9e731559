// The attention of a block on columns: over sequences beside each other, in strips, or over what a
// sequence has read before.
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

// What the attention of a block works on, and keeps for the way back.
struct AttentionMemory {
  Floats qkv;      // [3·width][columns], queries and keys turned by then
  Floats weights;  // by sequence and head, as kernels.h has them
  Floats mask;
  Floats dropped;
  Floats context;  // [width][columns]
};

// Not thread-safe: it has room for what it works on.
class ColumnAttention {
 public:
  // The reference is kept.
  explicit ColumnAttention(const Layers& layers);

  // The columns that are worked on from here on; they are kept by reference.
  void Prepare(const Columns& columns);

  // memory.qkv, as the block's linear gave it, becomes memory.context.
  void Forward(int block, AttentionMemory& memory);

  // The gradient of what the linear gave, [3·width][columns], by that of the context; sequences
  // only. Valid until the next call.
  float* Back(AttentionMemory& memory, const float* dcontext);

 private:
  // Of `length` positions.
  AttentionHead Head(int length) const;
  Attention HeadOf(const Sequence& sequence, int64_t weights, AttentionMemory& memory,
                   int head) const;
  void AttendToSequences(int block, AttentionMemory& memory);
  void AttendToStrip(const Strip& strip, AttentionMemory& memory);
  void AttendToPast(int block, AttentionMemory& memory);
  void FillMasks(int block, AttentionMemory& memory) const;
  void FillTurns();
  void Turn(float* qkv, bool back) const;
  // Columns that are no tokens.
  void Clear(float* x, int rows) const;

  const Layers& layers_;
  const ModelConfig& config_;
  const Kernels& kernels_;
  const int size_;  // features of a head
  Floats turns_;    // [context][2·half] cosines, then sines, of rotary positions
  Floats cosine_;   // [half][columns]
  Floats sine_;     // [half][columns]
  const Columns* columns_ = nullptr;
  std::vector<int64_t> weights_at_;  // by sequence, of its first head
  int64_t weights_size_ = 0;
  Floats dqkv_;
  Floats scratch_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_COLUMN_ATTENTION_H_
