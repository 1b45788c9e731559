// Keys and values of the positions that growing sequences have been read to.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_KEY_VALUE_CACHE_H_
#define ABLATE_SERVER_ENGINE_NATIVE_KEY_VALUE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/native/floats.h"

namespace ablate::engine::native {

// One head's keys and values of kColumns sequences at a position: a row a feature, `stride` floats
// apart.
struct KeysAndValues {
  const float* keys = nullptr;
  const float* values = nullptr;
  ptrdiff_t stride = 0;
};

// A sequence is a column, and kColumns of them lie side by side in a vector, as LaneAttention reads
// them. All sequences have one length. std::bad_alloc where there is no memory.
class KeyValueCache {
 public:
  // Of `columns` sequences, a multiple of kColumns, without a position yet.
  KeyValueCache(const ModelConfig& config, int columns);

  // Positions of every sequence, at most the model's context.
  int length() const { return length_; }

  // Puts the next position's, of a block's head, behind what the sequences from `column` on have.
  void Append(int block, int head, int column, const KeysAndValues& next);
  // Every block and head has its next position, if there are any.
  void Lengthen() { ++length_; }

  // [positions][features of a head][kColumns], of the sequences from `column` on.
  const float* keys(int block, int head, int column) const;
  const float* values(int block, int head, int column) const;

  // Sequence `to` becomes what sequence `from` is.
  void Copy(int from, int to);

 private:
  int64_t First(int head, int column) const;

  const int heads_;
  const int features_;  // of a head
  const int64_t room_;  // floats of a head in kColumns sequences
  int length_ = 0;
  // By block, [columns/kColumns][heads][context][features of a head][kColumns].
  std::vector<Floats> keys_;
  std::vector<Floats> values_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_KEY_VALUE_CACHE_H_
