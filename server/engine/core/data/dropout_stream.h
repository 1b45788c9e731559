// Computes dropout masks from seed, step, hook point and element. Nothing is stored, so a resumed
// run has the same masks. Torch-free; every backend uses it.
#ifndef ABLATE_SERVER_ENGINE_CORE_DATA_DROPOUT_STREAM_H_
#define ABLATE_SERVER_ENGINE_CORE_DATA_DROPOUT_STREAM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {

// Returns the factors of a hook point's elements in one update of a run: 1/(1 − rate) for a kept
// element, else 0. Element e is kept if the upper half of number e of splitmix64, started at
// Mix(StreamSeed(seed, "dropout/" + hook point) + γ·(step + 1)), is at least rate·2³². Mix and γ
// are splitmix64's finalizer and increment. Each update has a stream of its own, which can be
// computed without the earlier ones.
class DropoutStream {
 public:
  // `rate` is in [0, 1); `step` counts the updates before this one.
  DropoutStream(double rate, uint32_t seed, uint32_t step, absl::string_view hook_point)
      : stream_(SplitMix64::At(StreamSeed(seed, absl::StrCat("dropout/", hook_point)), step)),
        threshold_(Threshold(rate)),
        kept_(1 / (1 - rate)) {}

  // Writes the factors of elements first … first + length − 1, `stride` apart.
  template <typename Scalar>
  void FillLine(uint64_t first, int64_t length, Scalar* to, ptrdiff_t stride = 1) const {
    const auto kept = static_cast<Scalar>(kept_);
    for (int64_t j = 0; j < length; ++j, to += stride) {
      const uint64_t number = SplitMix64::At(stream_, first + static_cast<uint64_t>(j));
      *to = (number >> 32) >= threshold_ ? kept : Scalar(0);
    }
  }

  // The state at which the numbers begin.
  uint64_t stream() const { return stream_; }

  // An element is dropped if the upper half of its number is below the threshold.
  static uint64_t Threshold(double rate) { return static_cast<uint64_t>(std::ceil(rate * 0x1p32)); }

 private:
  uint64_t stream_;
  uint64_t threshold_;
  double kept_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_DATA_DROPOUT_STREAM_H_
