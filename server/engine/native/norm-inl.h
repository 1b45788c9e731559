// Computes norms over the features of each column, over the columns of each feature, and of each
// feature alone. Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_NORM_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_NORM_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_NORM_INL_H_
#endif

#include <cmath>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// Statistics that standardise a column.
struct ColumnStatistics {
  V16 mean;         // 0 if the kind doesn't centre
  V16 rstd;         // 1/σ
  V16 along_scale;  // x̂·along_scale·Σ g·x̂ is the component of a gradient g along x̂
};

HWY_INLINE ColumnStatistics StatisticsOf(const NormForward& n, const float* x) {
  const float features = static_cast<float>(n.size.features);
  const V16 one = Set(1.0f);
  V16 mean = Zero();
  if (FormulaOf(n.kind).centres) {
    for (int f = 0; f < n.size.features; ++f) mean = Add(mean, Load(x + f * n.size.columns));
    mean = Div(mean, Set(features));
  }
  V16 squares = Zero();
  for (int f = 0; f < n.size.features; ++f) {
    const V16 centred = Sub(Load(x + f * n.size.columns), mean);
    squares = MulAdd(centred, centred, squares);
  }
  if (!FormulaOf(n.kind).averages) return {mean, Div(one, Sqrt(Add(squares, Set(n.eps)))), one};
  if (n.deviation == NormDeviation::kPopulation) {
    const V16 variance = Div(squares, Set(features));
    return {mean, Div(one, Sqrt(Add(variance, Set(n.eps)))), Set(1.0f / features)};
  }
  const V16 deviation = Sqrt(Div(squares, Set(features - 1)));
  const V16 rstd = Div(one, Add(deviation, Set(n.eps)));
  // A column of equal features has x̂ = 0, and no component along it.
  const V16 divisor = Mul(Mul(Set(features - 1), deviation), rstd);
  return {mean, rstd, IfThenElseZero(Gt(deviation, Zero()), Div(one, divisor))};
}

// Returns x̂·gain + shift of a feature; `n` has gain, base and shift.
template <typename Affine>
HWY_INLINE V16 Scaled(V16 x_hat, const Affine& n, int feature) {
  if (n.gain != nullptr) x_hat = Mul(x_hat, Set(n.base + n.gain[feature]));
  return n.shift != nullptr ? Add(x_hat, Set(n.shift[feature])) : x_hat;
}

// Returns the gradient of x̂ of a feature at columns `at`….
template <typename Affine>
HWY_INLINE V16 BackThroughGain(const Affine& n, int feature, ptrdiff_t at) {
  const V16 dy = Load(n.dy + at);
  return n.gain != nullptr ? Mul(dy, Set(n.base + n.gain[feature])) : dy;
}

HWY_NOINLINE void ForwardNorm(const NormForward& n) {
  for (ptrdiff_t c = 0; c < n.size.columns; c += kLanes) {
    const ColumnStatistics is = StatisticsOf(n, n.x + c);
    for (int f = 0; f < n.size.features; ++f) {
      const ptrdiff_t at = f * n.size.columns + c;
      const V16 x_hat = Mul(Sub(Load(n.x + at), is.mean), is.rstd);
      Store(x_hat, n.x_hat + at);
      Store(Scaled(x_hat, n, f), n.y + at);
    }
    Store(is.rstd, n.rstd + c);
    Store(is.along_scale, n.along_scale + c);
  }
}

// Adds a feature's contribution to the gradients of gain and shift.
HWY_INLINE void AddAffineGradients(const float* dy, const float* x_hat, ptrdiff_t columns,
                                   float* dgain, float* dshift) {
  V16 along = Zero(), level = Zero();
  for (ptrdiff_t c = 0; c < columns; c += kLanes) {
    const V16 g = Load(dy + c);
    along = MulAdd(g, Load(x_hat + c), along);
    level = Add(level, g);
  }
  if (dgain != nullptr) *dgain += Sum(along);
  if (dshift != nullptr) *dshift += Sum(level);
}

// Does so for all features, if the gradients are wanted.
template <typename Back>
HWY_INLINE void AddAllAffineGradients(const Back& n, const float* x_hat) {
  if (n.dgain == nullptr && n.dshift == nullptr) return;
  for (int f = 0; f < n.size.features; ++f) {
    AddAffineGradients(n.dy + f * n.size.columns, x_hat + f * n.size.columns, n.size.columns,
                       n.dgain != nullptr ? n.dgain + f : nullptr,
                       n.dshift != nullptr ? n.dshift + f : nullptr);
  }
}

// Returns the gradient of x that a backward mode computes from a gradient g of x̂.
HWY_INLINE V16 BackThroughXHat(NormBackward mode, V16 g, V16 x_hat, V16 level, V16 along,
                               V16 rstd) {
  if (mode == NormBackward::kIdentity) return g;
  V16 dx = Sub(g, level);
  if (mode != NormBackward::kCenterScale) dx = NegMulAdd(x_hat, along, dx);
  return mode == NormBackward::kProjected ? dx : Mul(dx, rstd);
}

HWY_NOINLINE void BackNorm(const NormBack& n) {
  const ptrdiff_t columns = n.size.columns;
  const int features = n.size.features;
  AddAllAffineGradients(n, n.x_hat);
  for (ptrdiff_t c = 0; c < columns; c += kLanes) {
    V16 level = Zero(), along = Zero();
    for (int f = 0; f < features; ++f) {
      const V16 g = BackThroughGain(n, f, f * columns + c);
      level = Add(level, g);
      along = MulAdd(g, Load(n.x_hat + f * columns + c), along);
    }
    level = FormulaOf(n.kind).centres ? Div(level, Set(static_cast<float>(features))) : Zero();
    along = Mul(along, Load(n.along_scale + c));
    const V16 rstd = Load(n.rstd + c);
    for (int f = 0; f < features; ++f) {
      const ptrdiff_t at = f * columns + c;
      const V16 dx = BackThroughXHat(n.backward, BackThroughGain(n, f, at), Load(n.x_hat + at),
                                     level, along, rstd);
      Store(n.accumulate ? Add(Load(n.dx + at), dx) : dx, n.dx + at);
    }
  }
}

// A function of a pointwise norm and its derivative.
struct PointwiseValue {
  V16 f;
  V16 slope;
};

HWY_INLINE PointwiseValue TanhOf(V16 z) {
  const V16 f = Tanh(z);
  return {f, NegMulAdd(f, f, Set(1.0f))};
}

// Near 0 by an odd polynomial, fitted to a relative error of 4e-8, because 1 − erfc loses the
// digits of a small result.
HWY_INLINE PointwiseValue ErfOf(V16 z) {
  const V16 square = Mul(z, z), size = Abs(z), e = Exp(Neg(square));
  constexpr float kFitted[] = {-2.647447690e-2f, 1.127699896e-1f, -3.761222164e-1f,
                               1.128379126e+0f};
  V16 p = Set(4.281796322e-3f);
#pragma GCC unroll 4
  for (const float coefficient : kFitted) p = MulAdd(p, square, Set(coefficient));
  const V16 far = NegMulAdd(ScaledErfc(size), e, Set(1.0f));
  return {IfThenElse(Gt(Set(0.7f), size), Mul(p, z), CopySign(far, z)), Mul(Set(1.12837917f), e)};
}

HWY_NOINLINE void ForwardPointwiseNorm(const PointwiseNormForward& n) {
  const bool erf = n.kind == NormKind::kDerf;
  for (int f = 0; f < n.size.features; ++f) {
    for (ptrdiff_t c = 0; c < n.size.columns; c += kLanes) {
      const ptrdiff_t at = f * n.size.columns + c;
      const V16 x = Load(n.x + at), z = MulAdd(Set(n.alpha), x, Set(n.offset));
      const PointwiseValue value = erf ? ErfOf(z) : TanhOf(z);
      Store(x, n.kept_x + at);
      Store(value.f, n.f + at);
      Store(value.slope, n.slope + at);
      Store(Scaled(value.f, n, f), n.y + at);
    }
  }
}

HWY_NOINLINE void BackPointwiseNorm(const PointwiseNormBack& n) {
  AddAllAffineGradients(n, n.f);
  V16 alpha = Zero(), offset = Zero();
  for (int f = 0; f < n.size.features; ++f) {
    for (ptrdiff_t c = 0; c < n.size.columns; c += kLanes) {
      const ptrdiff_t at = f * n.size.columns + c;
      const V16 dz = Mul(BackThroughGain(n, f, at), Load(n.slope + at));
      alpha = MulAdd(dz, Load(n.x + at), alpha);
      offset = Add(offset, dz);
      const V16 dx = Mul(Set(n.alpha), dz);
      Store(n.accumulate ? Add(Load(n.dx + at), dx) : dx, n.dx + at);
    }
  }
  if (n.dalpha != nullptr) *n.dalpha += Sum(alpha);
  if (n.doffset != nullptr) *n.doffset += Sum(offset);
}

HWY_NOINLINE void ForwardBatchNorm(const BatchNormForward& n) {
  const ptrdiff_t columns = n.size.columns;
  for (int f = 0; f < n.size.features; ++f) {
    const float* const x = n.x + f * columns;
    V16 sum = Zero();
    for (ptrdiff_t c = 0; c < columns; c += kLanes)
      sum = MulAdd(Load(x + c), Load(n.real + c), sum);
    const float mean = Sum(sum) / n.count;
    V16 squares = Zero();
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 centred = Mul(Sub(Load(x + c), Set(mean)), Load(n.real + c));
      squares = MulAdd(centred, centred, squares);
    }
    n.mean[f] = mean;
    n.variance[f] = Sum(squares) / n.count;
    n.rstd[f] = 1.0f / std::sqrt(n.variance[f] + n.eps);
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 x_hat = Mul(Sub(Load(x + c), Set(mean)), Set(n.rstd[f]));
      Store(x_hat, n.x_hat + f * columns + c);
      Store(Scaled(x_hat, n, f), n.y + f * columns + c);
    }
  }
}

HWY_NOINLINE void StandardiseByRow(const StandardiseRows& s) {
  for (int f = 0; f < s.size.features; ++f) {
    for (ptrdiff_t c = 0; c < s.size.columns; c += kLanes) {
      const ptrdiff_t at = f * s.size.columns + c;
      const V16 x_hat = Mul(Sub(Load(s.x + at), Set(s.mean[f])), Set(s.rstd[f]));
      Store(Scaled(x_hat, s, f), s.y + at);
    }
  }
}

HWY_NOINLINE void BackBatchNorm(const BatchNormBack& n) {
  const ptrdiff_t columns = n.size.columns;
  for (int f = 0; f < n.size.features; ++f) {
    const float* const dy = n.dy + f * columns;
    const float* const x_hat = n.x_hat + f * columns;
    V16 levels = Zero(), alongs = Zero();
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 g = Mul(Load(dy + c), Load(n.real + c));
      levels = Add(levels, g);
      alongs = MulAdd(g, Load(x_hat + c), alongs);
    }
    const float level = Sum(levels), along = Sum(alongs);
    if (n.dgain != nullptr) n.dgain[f] += along;
    if (n.dshift != nullptr) n.dshift[f] += level;
    const float gain = n.gain != nullptr ? n.base + n.gain[f] : 1.0f;
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 dx =
          BackThroughXHat(n.backward, Mul(Load(dy + c), Set(gain)), Load(x_hat + c),
                          Set(level * gain / n.count), Set(along * gain / n.count), Set(n.rstd[f]));
      const V16 real = Mul(dx, Load(n.real + c));
      float* const to = n.dx + f * columns + c;
      Store(n.accumulate ? Add(Load(to), real) : real, to);
    }
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_NORM_INL_H_
