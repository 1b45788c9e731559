// Computes norms over the features of each column, and over the columns of each feature. Included
// once per target.
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
  V16 mean;     // 0 if the kind doesn't centre
  V16 inverse;  // 1/σ
  V16 share;    // z·share·Σ gz is the component of a gradient g along z
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
  const V16 inverse = Div(one, Add(deviation, Set(n.eps)));
  // A column of equal features has z = 0, and no component along it.
  const V16 divisor = Mul(Mul(Set(features - 1), deviation), inverse);
  return {mean, inverse, IfThenElseZero(Gt(deviation, Zero()), Div(one, divisor))};
}

HWY_INLINE V16 Scaled(V16 z, const float* gain, const float* shift, int feature) {
  if (gain != nullptr) z = Mul(z, Set(gain[feature]));
  return shift != nullptr ? Add(z, Set(shift[feature])) : z;
}

HWY_NOINLINE void ForwardNorm(const NormForward& n) {
  for (ptrdiff_t c = 0; c < n.size.columns; c += kLanes) {
    const ColumnStatistics is = StatisticsOf(n, n.x + c);
    for (int f = 0; f < n.size.features; ++f) {
      const ptrdiff_t at = f * n.size.columns + c;
      const V16 z = Mul(Sub(Load(n.x + at), is.mean), is.inverse);
      Store(z, n.z + at);
      Store(Scaled(z, n.gain, n.shift, f), n.y + at);
    }
    Store(is.inverse, n.inverse + c);
    Store(is.share, n.share + c);
  }
}

// Adds a feature's contribution to the gradients of gain and shift.
HWY_INLINE void AddAffineGradients(const float* dy, const float* z, ptrdiff_t columns, float* dgain,
                                   float* dshift) {
  V16 along = Zero(), level = Zero();
  for (ptrdiff_t c = 0; c < columns; c += kLanes) {
    const V16 g = Load(dy + c);
    along = MulAdd(g, Load(z + c), along);
    level = Add(level, g);
  }
  if (dgain != nullptr) *dgain += Sum(along);
  if (dshift != nullptr) *dshift += Sum(level);
}

// Returns the gradient of x that a backward mode computes from a gradient g of z.
HWY_INLINE V16 BackThroughZ(NormBackward mode, V16 g, V16 z, V16 level, V16 along, V16 inverse) {
  if (mode == NormBackward::kIdentity) return g;
  V16 dx = Sub(g, level);
  if (mode != NormBackward::kCenterScale) dx = NegMulAdd(z, along, dx);
  return mode == NormBackward::kProjected ? dx : Mul(dx, inverse);
}

HWY_NOINLINE void BackNorm(const NormBack& n) {
  const ptrdiff_t columns = n.size.columns;
  const int features = n.size.features;
  if (n.dgain != nullptr || n.dshift != nullptr) {
    for (int f = 0; f < features; ++f) {
      AddAffineGradients(n.dy + f * columns, n.z + f * columns, columns,
                         n.dgain != nullptr ? n.dgain + f : nullptr,
                         n.dshift != nullptr ? n.dshift + f : nullptr);
    }
  }
  const auto gradient = [&n](int f, ptrdiff_t at) HWY_ATTR {
    return n.gain != nullptr ? Mul(Load(n.dy + at), Set(n.gain[f])) : Load(n.dy + at);
  };
  for (ptrdiff_t c = 0; c < columns; c += kLanes) {
    V16 level = Zero(), along = Zero();
    for (int f = 0; f < features; ++f) {
      const V16 g = gradient(f, f * columns + c);
      level = Add(level, g);
      along = MulAdd(g, Load(n.z + f * columns + c), along);
    }
    level = FormulaOf(n.kind).centres ? Div(level, Set(static_cast<float>(features))) : Zero();
    along = Mul(along, Load(n.share + c));
    const V16 inverse = Load(n.inverse + c);
    for (int f = 0; f < features; ++f) {
      const ptrdiff_t at = f * columns + c;
      const V16 dx =
          BackThroughZ(n.backward, gradient(f, at), Load(n.z + at), level, along, inverse);
      Store(n.accumulate ? Add(Load(n.dx + at), dx) : dx, n.dx + at);
    }
  }
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
    n.inverse[f] = 1.0f / std::sqrt(n.variance[f] + n.eps);
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 z = Mul(Sub(Load(x + c), Set(mean)), Set(n.inverse[f]));
      Store(z, n.z + f * columns + c);
      Store(Scaled(z, n.gain, n.shift, f), n.y + f * columns + c);
    }
  }
}

HWY_NOINLINE void StandardiseByRow(const StandardiseRows& s) {
  for (int f = 0; f < s.size.features; ++f) {
    for (ptrdiff_t c = 0; c < s.size.columns; c += kLanes) {
      const ptrdiff_t at = f * s.size.columns + c;
      const V16 z = Mul(Sub(Load(s.x + at), Set(s.mean[f])), Set(s.inverse[f]));
      Store(Scaled(z, s.gain, s.shift, f), s.y + at);
    }
  }
}

HWY_NOINLINE void BackBatchNorm(const BatchNormBack& n) {
  const ptrdiff_t columns = n.size.columns;
  for (int f = 0; f < n.size.features; ++f) {
    const float* const dy = n.dy + f * columns;
    const float* const z = n.z + f * columns;
    V16 levels = Zero(), alongs = Zero();
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 g = Mul(Load(dy + c), Load(n.real + c));
      levels = Add(levels, g);
      alongs = MulAdd(g, Load(z + c), alongs);
    }
    const float level = Sum(levels), along = Sum(alongs);
    if (n.dgain != nullptr) n.dgain[f] += along;
    if (n.dshift != nullptr) n.dshift[f] += level;
    const float gain = n.gain != nullptr ? n.gain[f] : 1.0f;
    for (ptrdiff_t c = 0; c < columns; c += kLanes) {
      const V16 dx =
          BackThroughZ(n.backward, Mul(Load(dy + c), Set(gain)), Load(z + c),
                       Set(level * gain / n.count), Set(along * gain / n.count), Set(n.inverse[f]));
      const V16 real = Mul(dx, Load(n.real + c));
      float* const to = n.dx + f * columns + c;
      Store(n.accumulate ? Add(Load(to), real) : real, to);
    }
  }
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_NORM_INL_H_
