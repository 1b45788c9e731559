// Dropout's masks as a function of seed, step, site and element: nothing of it is kept, and no
// resumption changes it. Torch-free: every backend draws by it.
#ifndef ABLATE_SERVER_ENGINE_DATA_DROPOUT_SITE_H_
#define ABLATE_SERVER_ENGINE_DATA_DROPOUT_SITE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/data/random.h"

namespace ablate::engine {

// What a site's elements are multiplied by in one update of a run: 1/(1 − rate) where an element
// stays, else 0. Element e stays if the upper half of number e of splitmix64 is at least rate·2³²,
// begun at Mix(StreamSeed(seed, "dropout/" + site) + γ·(step + 1)), with splitmix64's own finalizer
// Mix and increment γ: a stream for each update, found without the ones before it.
class DropoutSite {
 public:
  // `rate` is in [0, 1); `step` counts the updates before this one.
  DropoutSite(double rate, uint32_t seed, uint32_t step, absl::string_view site)
      : stream_(SplitMix64::At(StreamSeed(seed, absl::StrCat("dropout/", site)), step)),
        threshold_(Threshold(rate)),
        kept_(1 / (1 - rate)) {}

  // Elements first … first + length − 1, `stride` apart.
  template <typename Scalar>
  void FillLine(uint64_t first, int64_t length, Scalar* to, ptrdiff_t stride = 1) const {
    const auto kept = static_cast<Scalar>(kept_);
    for (int64_t j = 0; j < length; ++j, to += stride) {
      const uint64_t number = SplitMix64::At(stream_, first + static_cast<uint64_t>(j));
      *to = (number >> 32) >= threshold_ ? kept : Scalar(0);
    }
  }

  // The state that the numbers begin at.
  uint64_t stream() const { return stream_; }

  // Elements go whose number's upper half is below it.
  static uint64_t Threshold(double rate) { return static_cast<uint64_t>(std::ceil(rate * 0x1p32)); }

 private:
  uint64_t stream_;
  uint64_t threshold_;
  double kept_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_DROPOUT_SITE_H_
