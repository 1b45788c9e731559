#include "server/engine/model/dropout.h"

#include "server/engine/data/dropout_site.h"
#include "server/engine/data/random.h"

namespace ablate::engine {
namespace {

DropoutSite SiteOf(const Dropout& dropout, absl::string_view site) {
  return {dropout.rate, dropout.seed, dropout.step, site};
}

template <typename Scalar>
void FillMask(const DropoutSite& site, const at::Tensor& first, at::Tensor& mask) {
  const int64_t lines = mask.size(0), length = mask.size(1);
  const int64_t* line = first.const_data_ptr<int64_t>();
  Scalar* to = mask.mutable_data_ptr<Scalar>();
  for (int64_t l = 0; l < lines; ++l, to += length) {
    site.FillLine(static_cast<uint64_t>(line[l]), length, to);
  }
}

// Shifts int64 numbers as if unsigned.
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
  at::Tensor mask = at::empty({first.size(0), lines.length}, options);
  if (mask.scalar_type() == at::kDouble) {
    FillMask<double>(SiteOf(dropout, site), first, mask);
  } else {
    FillMask<float>(SiteOf(dropout, site), first, mask);
  }
  return mask;
}

at::Tensor ComposedDropoutMask(const Dropout& dropout, absl::string_view site,
                               const DropoutLines& lines, at::TensorOptions options) {
  const at::TensorOptions words = lines.first.options();
  const at::Tensor number =
      lines.first.unsqueeze(1) + at::arange(1, lines.length + 1, words);  // [L, length]
  const auto stream = static_cast<int64_t>(SiteOf(dropout, site).stream());
  const at::Tensor mixed = Mixed(number.mul(static_cast<int64_t>(SplitMix64::kGamma)) + stream);
  const at::Tensor stays =
      ShiftRight(mixed, 32).ge(static_cast<int64_t>(DropoutSite::Threshold(dropout.rate)));
  return stays.to(options) * (1 / (1 - dropout.rate));
}

at::Tensor Drop(const at::Tensor& x, const Dropout& dropout, absl::string_view site,
                const DropoutLines& lines) {
  const auto make = x.is_cpu() ? DropoutMask : ComposedDropoutMask;
  return x * make(dropout, site, lines, x.options().requires_grad(false)).view(x.sizes());
}

}  // namespace ablate::engine
