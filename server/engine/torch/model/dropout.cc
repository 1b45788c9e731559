#include "server/engine/torch/model/dropout.h"

#include "absl/strings/str_cat.h"
#include "server/engine/core/data/dropout_stream.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

constexpr auto kGamma = static_cast<int64_t>(SplitMix64::kGamma);

DropoutStream StreamOf(const Dropout& dropout, absl::string_view hook_point) {
  return {dropout.rate, dropout.seed, dropout.step, hook_point};
}

template <typename Scalar>
void FillMask(const DropoutStream& stream, const at::Tensor& first, at::Tensor& mask) {
  const int64_t lines = mask.size(0), length = mask.size(1);
  const int64_t* line = first.const_data_ptr<int64_t>();
  Scalar* to = mask.mutable_data_ptr<Scalar>();
  for (int64_t l = 0; l < lines; ++l, to += length) {
    stream.FillLine(static_cast<uint64_t>(line[l]), length, to);
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

// As DropoutStream::stream() of the step in `device_step`, [1].
at::Tensor StreamOnDevice(const Dropout& dropout, absl::string_view hook_point) {
  const auto seed =
      static_cast<int64_t>(StreamSeed(dropout.seed, absl::StrCat("dropout/", hook_point)));
  return Mixed((dropout.device_step + 1).mul(kGamma) + seed);
}

}  // namespace

at::Tensor DropoutMask(const Dropout& dropout, absl::string_view hook_point,
                       const DropoutLines& lines, at::TensorOptions options) {
  const at::Tensor first = lines.first.contiguous();
  at::Tensor mask = at::empty({first.size(0), lines.length}, options);
  if (mask.scalar_type() == at::kDouble) {
    FillMask<double>(StreamOf(dropout, hook_point), first, mask);
  } else {
    FillMask<float>(StreamOf(dropout, hook_point), first, mask);
  }
  return mask;
}

at::Tensor ComposedDropoutMask(const Dropout& dropout, absl::string_view hook_point,
                               const DropoutLines& lines, at::TensorOptions options) {
  const at::TensorOptions words = lines.first.options();
  const at::Tensor number =
      lines.first.unsqueeze(1) + at::arange(1, lines.length + 1, words);  // [L, length]
  const at::Tensor scaled = number.mul(kGamma);
  const at::Tensor mixed =
      Mixed(dropout.device_step.defined()
                ? scaled + StreamOnDevice(dropout, hook_point)
                : scaled + static_cast<int64_t>(StreamOf(dropout, hook_point).stream()));
  const at::Tensor stays =
      ShiftRight(mixed, 32).ge(static_cast<int64_t>(DropoutStream::Threshold(dropout.rate)));
  return stays.to(options) * (1 / (1 - dropout.rate));
}

at::Tensor Drop(const at::Tensor& x, const Dropout& dropout, absl::string_view hook_point,
                const DropoutLines& lines) {
  const bool on_host = x.is_cpu() && !dropout.device_step.defined();
  const auto make = on_host ? DropoutMask : ComposedDropoutMask;
  // Not in bfloat16: that would round 1/(1 − rate), a factor of all elements.
  const at::ScalarType type = x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
  const at::TensorOptions options = x.options().dtype(type).requires_grad(false);
  const at::Tensor mask = make(dropout, hook_point, lines, options);
  return (x * mask.view(x.sizes())).to(x.scalar_type());
}

}  // namespace ablate::engine
