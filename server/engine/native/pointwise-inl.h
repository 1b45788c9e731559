// Computes elementwise operations (activations with their derivatives, products, sums, rotations)
// and the loss of each column. Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_POINTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_POINTWISE_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_POINTWISE_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_POINTWISE_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

struct Activated {
  V16 value;
  V16 slope;
};

struct Relu {
  static HWY_INLINE Activated Of(V16 u) {
    const M16 positive = Gt(u, Zero());
    // NaN stays NaN.
    return {Max(Zero(), u), IfThenElseZero(positive, Set(1.0f))};
  }
};

// u·Φ(u), with one exponential for value and derivative: u·φ(u) needs the same e^(−x²) as erfc.
struct Gelu {
  static HWY_INLINE Activated Of(V16 u) {
    const V16 x = Mul(Abs(u), Set(0.707106781f));
    const V16 e = Exp(Neg(Mul(x, x)));
    const V16 tail = Mul(Mul(Set(0.5f), ScaledErfc(x)), e);  // Φ(−|u|)
    const V16 phi = IfThenElse(Gt(u, Zero()), Sub(Set(1.0f), tail), tail);
    return {Mul(u, phi), MulAdd(Mul(u, Set(0.398942280f)), e, phi)};
  }
};

// u/2·(1 + tanh y), y = √(2/π)·(u + 0.044715u³).
struct GeluTanh {
  static HWY_INLINE Activated Of(V16 u) {
    const V16 one = Set(1.0f), root = Set(0.797884561f);
    const V16 square = Mul(u, u);
    const V16 y = Mul(Mul(u, root), MulAdd(square, Set(0.044715f), one));
    // (1 + tanh y)/2 is the sigmoid of 2y.
    const V16 half = Sigmoid(Add(y, y));
    const V16 dy = Mul(root, MulAdd(square, Set(0.134145f), one));
    const V16 slope = Mul(Mul(Add(u, u), Mul(half, Sub(one, half))), dy);
    return {Mul(u, half), Add(half, slope)};
  }
};

struct Silu {
  static HWY_INLINE Activated Of(V16 u) {
    const V16 one = Set(1.0f);
    const V16 s = Sigmoid(u);
    return {Mul(u, s), Mul(s, MulAdd(u, Sub(one, s), one))};
  }
};

struct Relu2 {
  static HWY_INLINE Activated Of(V16 u) {
    const V16 positive = Relu::Of(u).value;
    return {Mul(positive, positive), Add(positive, positive)};
  }
};

template <typename Function>
HWY_INLINE void ActivateAll(const Activate& a) {
  const int64_t n = int64_t{a.rows} * a.columns;
  for (int64_t i = 0; i < n; i += kLanes) {
    const Activated of = Function::Of(Load(a.x + i));
    Store(of.value, a.y + i);
    if (a.slope != nullptr) Store(of.slope, a.slope + i);
  }
}

// f(gate)·x.
template <typename Function>
HWY_INLINE void ActivateGated(const Activate& a) {
  const int64_t n = int64_t{a.rows} * a.columns;
  for (int64_t i = 0; i < n; i += kLanes) {
    const Activated gate = Function::Of(Load(a.x + i));
    const V16 x = Load(a.x + n + i);
    Store(Mul(gate.value, x), a.y + i);
    if (a.slope == nullptr) continue;
    Store(Mul(gate.slope, x), a.slope + i);
    Store(gate.value, a.slope + n + i);
  }
}

HWY_NOINLINE void ApplyActivation(const Activate& a) {
  switch (a.activation) {
    case Activation::kRelu:
      return ActivateAll<Relu>(a);
    case Activation::kGelu:
      return ActivateAll<Gelu>(a);
    case Activation::kGeluTanh:
      return ActivateAll<GeluTanh>(a);
    case Activation::kSilu:
      return ActivateAll<Silu>(a);
    case Activation::kRelu2:
      return ActivateAll<Relu2>(a);
    case Activation::kSwiglu:
      return ActivateGated<Silu>(a);
    case Activation::kGeglu:
      return ActivateGated<Gelu>(a);
    case Activation::kReglu:
      return ActivateGated<Relu>(a);
  }
}

HWY_NOINLINE void Multiply(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) Store(Mul(Load(y + i), Load(x + i)), y + i);
}

HWY_NOINLINE void Combine(float a, const float* x, float b, float* y, int64_t n) {
  if (b == 0) {
    for (int64_t i = 0; i < n; i += kLanes) Store(Mul(Set(a), Load(x + i)), y + i);
    return;
  }
  for (int64_t i = 0; i < n; i += kLanes) {
    Store(MulAdd(Set(a), Load(x + i), Mul(Set(b), Load(y + i))), y + i);
  }
}

HWY_NOINLINE void Cap(float c, float* x, int64_t n) {
  const V16 cap = Set(c);
  for (int64_t i = 0; i < n; i += kLanes) Store(Mul(cap, Tanh(Div(Load(x + i), cap))), x + i);
}

HWY_NOINLINE void CapBack(float c, const float* dy, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const V16 share = Div(Load(y + i), Set(c));
    Store(Mul(Load(dy + i), NegMulAdd(share, share, Set(1.0f))), y + i);
  }
}

HWY_NOINLINE void Rotate(float* x, ptrdiff_t row, int half, ptrdiff_t columns, const float* cosine,
                         const float* sine, bool back) {
  for (int r = 0; r < half; ++r) {
    float* const low = x + r * row;
    float* const high = x + (r + half) * row;
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 cos = Load(cosine + r * columns + c);
      const V16 sin = back ? Neg(Load(sine + r * columns + c)) : Load(sine + r * columns + c);
      const V16 a = Load(low + c), b = Load(high + c);
      Store(Sub(Mul(a, cos), Mul(b, sin)), low + c);
      Store(Add(Mul(b, cos), Mul(a, sin)), high + c);
    }
  }
}

// Statistics of the columns from `column` on: the largest logit, Σ e^(logit − largest), and Σ of
// the logits.
struct ColumnLogits {
  V16 largest;
  V16 sum;
  V16 total;
};

// Stores e^(logit − largest) in `exponentials`, unless it is null.
HWY_INLINE ColumnLogits ReadLogits(const float* logits, int vocabulary, ptrdiff_t columns,
                                   float* exponentials) {
  ColumnLogits read = {Load(logits), Zero(), Zero()};
  for (int v = 0; v < vocabulary; ++v) {
    const V16 logit = Load(logits + v * columns);
    read.largest = Max(read.largest, logit);
    read.total = Add(read.total, logit);
  }
  for (int v = 0; v < vocabulary; ++v) {
    const V16 e = Exp(Sub(Load(logits + v * columns), read.largest));
    read.sum = Add(read.sum, e);
    if (exponentials != nullptr) Store(e, exponentials + v * columns);
  }
  return read;
}

HWY_NOINLINE void ComputeCrossEntropy(const CrossEntropy& l) {
  const float vocabulary = static_cast<float>(l.vocabulary);
  HWY_ALIGN float picked[kLanes], largest[kLanes], sum[kLanes], total[kLanes], live[kLanes];
  HWY_ALIGN float growth[kLanes];  // factor of p in the gradient
  for (ptrdiff_t c = 0; c < l.columns; c += kLanes) {
    float* const logits = l.logits + c;
    for (int i = 0; i < kLanes; ++i) {
      const int32_t target = l.targets[c + i];
      live[i] = target < 0 ? 0.0f : l.weight;
      picked[i] = target < 0 ? 0.0f : logits[target * l.columns + i];
    }
    const ColumnLogits read = ReadLogits(logits, l.vocabulary, l.columns, logits);
    Store(read.largest, largest);
    Store(read.sum, sum);
    Store(read.total, total);
    for (int i = 0; i < kLanes; ++i) {
      const float log_sum = largest[i] + std::log(sum[i]);
      const float loss = (1 - l.smoothing) * (log_sum - picked[i]) +
                         (l.smoothing > 0 ? l.smoothing * (log_sum - total[i] / vocabulary) : 0) +
                         (l.z_loss > 0 ? l.z_loss * log_sum * log_sum : 0);
      growth[i] = l.z_loss > 0 ? 1 + 2 * l.z_loss * log_sum : 1;
      l.losses[c + i] = l.targets[c + i] < 0 ? 0.0f : loss;
    }
    // (1 + 2z·ln Σ)·p − (1 − ε)·[target] − ε/V, weighted. With a vocabulary of one the gradient is
    // exactly 0 without z; rounding errors in it would be amplified by a model without norms.
    if (l.vocabulary == 1 && l.z_loss == 0) {
      Store(Zero(), logits);
      continue;
    }
    const V16 weight = Load(live);
    const V16 scale = Mul(Div(weight, read.sum), Load(growth));
    const V16 even = Mul(weight, Set(l.smoothing / vocabulary));
    const M16 counts = Gt(weight, Zero());
    for (int v = 0; v < l.vocabulary; ++v) {
      float* const at = logits + v * l.columns;
      Store(IfThenElseZero(counts, Sub(Mul(Load(at), scale), even)), at);
    }
    for (int i = 0; i < kLanes; ++i) {
      const int32_t target = l.targets[c + i];
      if (target >= 0) logits[target * l.columns + i] -= (1 - l.smoothing) * l.weight;
    }
  }
}

HWY_NOINLINE void SummariseLogits(const LogitSummary& s) {
  HWY_ALIGN float largest[kLanes], sum[kLanes], best[kLanes];
  for (ptrdiff_t c = 0; c < s.columns; c += kLanes) {
    const float* const logits = s.logits + c;
    const ColumnLogits read = ReadLogits(logits, s.vocabulary, s.columns, nullptr);
    V16 highest = Load(logits), which = Zero();
    for (int v = 1; v < s.vocabulary; ++v) {
      const V16 logit = Load(logits + v * s.columns);
      const M16 higher = Gt(logit, highest);
      highest = IfThenElse(higher, logit, highest);
      which = IfThenElse(higher, Set(static_cast<float>(v)), which);
    }
    Store(read.largest, largest);
    Store(read.sum, sum);
    Store(which, best);
    for (int i = 0; i < kLanes; ++i) {
      s.best[c + i] = static_cast<int32_t>(best[i]);
      s.log_sum[c + i] = largest[i] + std::log(sum[i]);
    }
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_POINTWISE_INL_H_
