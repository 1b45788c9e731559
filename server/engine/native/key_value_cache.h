// Caches keys and values of growing sequences.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_KEY_VALUE_CACHE_H_
#define ABLATE_SERVER_ENGINE_NATIVE_KEY_VALUE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/native/floats.h"

namespace ablate::engine::native {

// One head's keys and values of kColumns sequences at one position: one row per feature, `stride`
// floats apart.
struct KeysAndValues {
  const float* keys = nullptr;
  const float* values = nullptr;
  ptrdiff_t stride = 0;
};

// A sequence is a column, and a vector holds kColumns of them, in the layout that LaneAttention
// reads. All sequences have the same length. Throws std::bad_alloc if out of memory.
class KeyValueCache {
 public:
  // Creates a cache of `columns` sequences, a multiple of kColumns, with length 0.
  KeyValueCache(const ModelConfig& config, int columns);

  // Length of every sequence, at most the model's context.
  int length() const { return length_; }

  // Stores the next position of a block's head for the kColumns sequences from `column` on.
  void Append(int block, int head, int column, const KeysAndValues& next);
  // Call it once every block and head has stored the next position.
  void Lengthen() { ++length_; }

  // [positions][features of a head][kColumns], of the sequences from `column` on.
  const float* keys(int block, int head, int column) const;
  const float* values(int block, int head, int column) const;

  // Copies sequence `from` to sequence `to`.
  void Copy(int from, int to);

 private:
  int64_t First(int head, int column) const;

  const int heads_;
  const int features_;  // of a head
  const int64_t room_;  // floats per head for kColumns sequences
  int length_ = 0;
  // By block, [columns/kColumns][heads][context][features of a head][kColumns].
  std::vector<Floats> keys_;
  std::vector<Floats> values_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_KEY_VALUE_CACHE_H_
