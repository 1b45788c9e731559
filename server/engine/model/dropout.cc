#include "server/engine/model/dropout.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

// Where the stream of one run's update begins.
uint64_t StreamOf(const RunDropout& run, absl::string_view site) {
  return SplitMix64::At(StreamSeed(run.seed, absl::StrCat("dropout/", site)), run.step);
}

// Elements below it go.
uint64_t Threshold(double rate) { return static_cast<uint64_t>(std::ceil(rate * 0x1p32)); }

template <typename Scalar>
void FillLine(uint64_t stream, uint64_t first, uint64_t threshold, Scalar kept, int64_t length,
              Scalar* to) {
  for (int64_t j = 0; j < length; ++j) {
    const uint64_t number = SplitMix64::At(stream, first + static_cast<uint64_t>(j));
    to[j] = (number >> 32) >= threshold ? kept : Scalar(0);
  }
}

template <typename Scalar>
void FillMask(const Dropout& dropout, absl::string_view site, const at::Tensor& first,
              at::Tensor& mask) {
  const int64_t lines = mask.size(1), length = mask.size(2);
  const uint64_t threshold = Threshold(dropout.rate);
  const auto kept = static_cast<Scalar>(1 / (1 - dropout.rate));
  Scalar* to = mask.mutable_data_ptr<Scalar>();
  for (int64_t run = 0; run < mask.size(0); ++run) {
    const uint64_t stream = StreamOf(dropout.runs[static_cast<size_t>(run)], site);
    const int64_t* line = first.const_data_ptr<int64_t>() + (first.size(0) > 1 ? run * lines : 0);
    for (int64_t l = 0; l < lines; ++l, to += length) {
      FillLine(stream, static_cast<uint64_t>(line[l]), threshold, kept, length, to);
    }
  }
}

// int64 numbers as if they were unsigned.
at::Tensor ShiftRight(const at::Tensor& words, int64_t bits) {
  const int64_t low = (int64_t{1} << (64 - bits)) - 1;
  return words.bitwise_right_shift(bits).bitwise_and(low);
}

at::Tensor Mixed(const at::Tensor& words) {
  at::Tensor mixed =
      words.bitwise_xor(ShiftRight(words, 30)).mul(static_cast<int64_t>(0xBF58476D1CE4E5B9u));
  mixed = mixed.bitwise_xor(ShiftRight(mixed, 27)).mul(static_cast<int64_t>(0x94D049BB133111EBu));
  return mixed.bitwise_xor(ShiftRight(mixed, 31));
}

}  // namespace

at::Tensor DropoutMask(const Dropout& dropout, absl::string_view site, const DropoutLines& lines,
                       at::TensorOptions options) {
  const at::Tensor first = lines.first.contiguous();
  const auto runs = static_cast<int64_t>(dropout.runs.size());
  at::Tensor mask = at::empty({runs, first.size(1), lines.length}, options);
  if (mask.scalar_type() == at::kDouble) {
    FillMask<double>(dropout, site, first, mask);
  } else {
    FillMask<float>(dropout, site, first, mask);
  }
  return mask;
}

at::Tensor ComposedDropoutMask(const Dropout& dropout, absl::string_view site,
                               const DropoutLines& lines, at::TensorOptions options) {
  const at::TensorOptions words = lines.first.options();
  const auto runs = static_cast<int64_t>(dropout.runs.size());
  at::Tensor streams = at::empty({runs, 1, 1}, words.device(at::kCPU));
  for (int64_t run = 0; run < runs; ++run) {
    streams.mutable_data_ptr<int64_t>()[run] =
        static_cast<int64_t>(StreamOf(dropout.runs[static_cast<size_t>(run)], site));
  }
  const at::Tensor number =
      lines.first.unsqueeze(2) + at::arange(1, lines.length + 1, words);  // [R or 1, L, length]
  const at::Tensor mixed =
      Mixed(number.mul(static_cast<int64_t>(SplitMix64::kGamma)) + streams.to(words.device()));
  const at::Tensor stays = ShiftRight(mixed, 32).ge(static_cast<int64_t>(Threshold(dropout.rate)));
  return stays.to(options) * (1 / (1 - dropout.rate));
}

at::Tensor Drop(const at::Tensor& x, const Dropout& dropout, absl::string_view site,
                const DropoutLines& lines) {
  const auto make = x.is_cpu() ? DropoutMask : ComposedDropoutMask;
  return x * make(dropout, site, lines, x.options().requires_grad(false)).view(x.sizes());
}

}  // namespace ablate::engine
