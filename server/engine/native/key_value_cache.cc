#include "server/engine/native/key_value_cache.h"

#include <algorithm>

#include "server/engine/core/layout.h"
#include "server/engine/native/kernels.h"

namespace ablate::engine::native {

KeyValueCache::KeyValueCache(const ModelConfig& config, int columns)
    : heads_(config.heads),
      features_(HeadSize(config)),
      room_(int64_t{config.context} * features_ * kColumns) {
  if (!Attends(config)) return;
  for (int block = 0; block < config.layers; ++block) {
    keys_.emplace_back(First(0, columns));
    values_.emplace_back(First(0, columns));
  }
}

int64_t KeyValueCache::First(int head, int column) const {
  return (int64_t{column / kColumns} * heads_ + head) * room_;
}

const float* KeyValueCache::keys(int block, int head, int column) const {
  return keys_[static_cast<size_t>(block)].data() + First(head, column);
}

const float* KeyValueCache::values(int block, int head, int column) const {
  return values_[static_cast<size_t>(block)].data() + First(head, column);
}

void KeyValueCache::Append(int block, int head, int column, const KeysAndValues& next) {
  const int64_t at = First(head, column) + int64_t{length_} * features_ * kColumns;
  float* const key = keys_[static_cast<size_t>(block)].data() + at;
  float* const value = values_[static_cast<size_t>(block)].data() + at;
  for (int f = 0; f < features_; ++f) {
    const ptrdiff_t row = int64_t{f} * kColumns;
    std::copy_n(next.keys + f * next.stride, kColumns, key + row);
    std::copy_n(next.values + f * next.stride, kColumns, value + row);
  }
}

void KeyValueCache::Copy(int from, int to) {
  const int64_t rows = int64_t{length_} * features_;
  for (int head = 0; head < heads_; ++head) {
    const int64_t source = First(head, from) + from % kColumns;
    const int64_t target = First(head, to) + to % kColumns;
    for (std::vector<Floats>* const all : {&keys_, &values_}) {
      for (Floats& of : *all) {
        float* const floats = of.data();
        for (int64_t row = 0; row < rows; ++row) {
          floats[target + row * kColumns] = floats[source + row * kColumns];
        }
      }
    }
  }
}

}  // namespace ablate::engine::native
