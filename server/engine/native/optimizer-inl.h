// Applies optimizer steps to flat buffers of any size. Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_OPTIMIZER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_OPTIMIZER_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_OPTIMIZER_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_OPTIMIZER_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// Calls step(at) for each vector of n elements. The remaining elements are copied to whole vectors;
// all of them except the first buffer's, which is only read, are written back.
template <int kBuffers, typename Step>
HWY_INLINE void ForEachVector(int64_t n, float* const (&buffers)[kBuffers], const Step& step) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    float* at[kBuffers];
    for (int b = 0; b < kBuffers; ++b) at[b] = buffers[b] + i;
    step(at);
  }
  if (i == n) return;
  HWY_ALIGN float copies[kBuffers][kLanes] = {};
  float* at[kBuffers];
  for (int b = 0; b < kBuffers; ++b) {
    at[b] = copies[b];
    for (int64_t j = i; j < n; ++j) copies[b][j - i] = buffers[b][j];
  }
  step(at);
  for (int b = 1; b < kBuffers; ++b) {
    for (int64_t j = i; j < n; ++j) buffers[b][j] = copies[b][j - i];
  }
}

// Adam with PyTorch's formulas: θ ← shrink·θ and g ← g + λθ, one of which changes nothing; m ← m +
// (1 − β₁)(g − m); v ← β₂v + (1 − β₂)g²; θ ← θ − (η/c₁)·m/(√v/√c₂ + ε). The fraction is expanded by
// √c₂, which saves a division; divisions are half of a step's time.
HWY_NOINLINE void StepAdam(const AdamStep& s) {
  const double steps = static_cast<double>(s.step);
  const double first_correction = 1 - std::pow(s.beta1, steps);
  const double second_correction = 1 - std::pow(s.beta2, steps);
  const V16 clip = Set(s.clip);
  const V16 shrink = Set(static_cast<float>(s.shrink));
  const V16 decay = Set(static_cast<float>(s.decay));
  const V16 first_weight = Set(static_cast<float>(1 - s.beta1));
  const V16 second_decay = Set(static_cast<float>(s.beta2));
  const V16 second_weight = Set(static_cast<float>(1 - s.beta2));
  const double root = std::sqrt(second_correction);
  const V16 eps = Set(static_cast<float>(s.eps * root));
  const V16 step_size = Set(static_cast<float>(s.learning_rate / first_correction * root));
  const auto step = [&](float* const(&at)[4]) HWY_ATTR {
    const V16 value = Load(at[1]);
    const V16 g = MulAdd(decay, value, Mul(Load(at[0]), clip));
    const V16 first = MulAdd(first_weight, Sub(g, Load(at[2])), Load(at[2]));
    const V16 second = MulAdd(second_decay, Load(at[3]), Mul(Mul(g, g), second_weight));
    const V16 denominator = Add(Sqrt(second), eps);
    Store(first, at[2]);
    Store(second, at[3]);
    Store(NegMulAdd(step_size, Div(first, denominator), Mul(value, shrink)), at[1]);
  };
  float* const buffers[] = {const_cast<float*>(s.gradients), s.values, s.first, s.second};
  ForEachVector(s.n, buffers, step);
}

// SGD: g ← g + λθ; b ← μb + g; θ ← θ − ηb.
HWY_NOINLINE void StepSgd(const SgdStep& s) {
  const V16 clip = Set(s.clip), decay = Set(s.decay), momentum = Set(s.momentum);
  const V16 learning_rate = Set(s.learning_rate);
  const auto step = [&](float* const(&at)[3]) HWY_ATTR {
    const V16 value = Load(at[1]);
    const V16 g = MulAdd(decay, value, Mul(Load(at[0]), clip));
    const V16 moved = MulAdd(momentum, Load(at[2]), g);
    Store(moved, at[2]);
    Store(NegMulAdd(learning_rate, moved, value), at[1]);
  };
  float* const buffers[] = {const_cast<float*>(s.gradients), s.values, s.momenta};
  ForEachVector(s.n, buffers, step);
}

// Lion: θ ← shrink·θ − η·sign(m + (1 − β₁)(g − m)); m ← m + (1 − β₂)(g − m).
HWY_NOINLINE void StepLion(const LionStep& s) {
  const V16 clip = Set(s.clip), shrink = Set(static_cast<float>(s.shrink));
  const V16 learning_rate = Set(static_cast<float>(s.learning_rate));
  const V16 mixed_weight = Set(static_cast<float>(1 - s.beta1));
  const V16 moved_weight = Set(static_cast<float>(1 - s.beta2));
  const auto step = [&](float* const(&at)[3]) HWY_ATTR {
    const V16 momentum = Load(at[2]);
    const V16 difference = Sub(Mul(Load(at[0]), clip), momentum);
    const V16 mixed = MulAdd(mixed_weight, difference, momentum);
    const V16 change = IfThenElseZero(Gt(Abs(mixed), Zero()), CopySign(learning_rate, mixed));
    Store(MulAdd(moved_weight, difference, momentum), at[2]);
    Store(Sub(Mul(Load(at[1]), shrink), change), at[1]);
  };
  float* const buffers[] = {const_cast<float*>(s.gradients), s.values, s.momenta};
  ForEachVector(s.n, buffers, step);
}

HWY_NOINLINE void Lerp(const float* x, float a, float* y, int64_t n) {
  const V16 weight = Set(a);
  const auto step = [&](float* const(&at)[2]) HWY_ATTR {
    const V16 old = Load(at[1]);
    Store(MulAdd(weight, Sub(Load(at[0]), old), old), at[1]);
  };
  float* const buffers[] = {const_cast<float*>(x), y};
  ForEachVector(n, buffers, step);
}

HWY_NOINLINE void AddTo(const float* x, float* y, int64_t n) {
  const auto step = [&](float* const(&at)[2])
                        HWY_ATTR { Store(Add(Load(at[1]), Load(at[0])), at[1]); };
  float* const buffers[] = {const_cast<float*>(x), y};
  ForEachVector(n, buffers, step);
}

// Returns Σ x² from sixteen sums of doubles, added in a fixed order. A float's square is exact in
// double, so that fused rounding makes no difference.
HWY_NOINLINE double SquaredNorm(const float* x, int64_t n) {
  const hn::CappedTag<double, kLanes> doubles;
  const hn::Rebind<float, decltype(doubles)> floats;
  constexpr int kDoubles = static_cast<int>(hn::MaxLanes(doubles));
  constexpr int kVectors = kLanes / kDoubles;
  hn::Vec<decltype(doubles)> sum[kVectors];
  for (auto& lanes : sum) lanes = hn::Zero(doubles);
  const auto add = [&](const float* from) HWY_ATTR {
    for (int v = 0; v < kVectors; ++v) {
      const auto value = hn::PromoteTo(doubles, hn::LoadU(floats, from + v * kDoubles));
      sum[v] = hn::MulAdd(value, value, sum[v]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) add(x + i);
  if (i < n) {
    HWY_ALIGN float rest[kLanes] = {};
    for (int64_t j = i; j < n; ++j) rest[j - i] = x[j];
    add(rest);
  }
  HWY_ALIGN double lanes[kLanes];
  for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], doubles, lanes + v * kDoubles);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_OPTIMIZER_INL_H_
