// Defines a vector of sixteen floats, independent of the machine's vector width. All kernels are
// written with it, so that each number is computed by the same operations in the same order on
// every target. Included once per target (Highway's foreach_target.h). kernels.h has the contracts
// of the kernels in all -inl.h files.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_VECTOR_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_VECTOR_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_VECTOR_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLanes = 16;
using D = hn::CappedTag<float, kLanes>;
using Part = hn::Vec<D>;
constexpr int kPart = static_cast<int>(hn::MaxLanes(D()));
constexpr int kParts = kLanes / kPart;

// Sixteen floats.
struct V16 {
  Part part[kParts];
};

// A mask of sixteen lanes.
struct M16 {
  hn::Mask<D> part[kParts];
};

// Applies `op` to each part of its arguments.
#define ABLATE_BY_PART(type, expression) \
  type result;                           \
  for (int i = 0; i < kParts; ++i) {     \
    result.part[i] = expression;         \
  }                                      \
  return result

HWY_INLINE V16 Set(float x) { ABLATE_BY_PART(V16, hn::Set(D(), x)); }
HWY_INLINE V16 Zero() { ABLATE_BY_PART(V16, hn::Zero(D())); }
HWY_INLINE V16 Load(const float* from) { ABLATE_BY_PART(V16, hn::LoadU(D(), from + i * kPart)); }
HWY_INLINE V16 Add(V16 a, V16 b) { ABLATE_BY_PART(V16, hn::Add(a.part[i], b.part[i])); }
HWY_INLINE V16 Sub(V16 a, V16 b) { ABLATE_BY_PART(V16, hn::Sub(a.part[i], b.part[i])); }
HWY_INLINE V16 Mul(V16 a, V16 b) { ABLATE_BY_PART(V16, hn::Mul(a.part[i], b.part[i])); }
HWY_INLINE V16 Div(V16 a, V16 b) { ABLATE_BY_PART(V16, hn::Div(a.part[i], b.part[i])); }
HWY_INLINE V16 Sqrt(V16 a) { ABLATE_BY_PART(V16, hn::Sqrt(a.part[i])); }
HWY_INLINE V16 Abs(V16 a) { ABLATE_BY_PART(V16, hn::Abs(a.part[i])); }
HWY_INLINE V16 Neg(V16 a) { ABLATE_BY_PART(V16, hn::Neg(a.part[i])); }
// a·b + c and c − a·b, rounded once if the target can.
HWY_INLINE V16 MulAdd(V16 a, V16 b, V16 c) {
  ABLATE_BY_PART(V16, hn::MulAdd(a.part[i], b.part[i], c.part[i]));
}
HWY_INLINE V16 NegMulAdd(V16 a, V16 b, V16 c) {
  ABLATE_BY_PART(V16, hn::NegMulAdd(a.part[i], b.part[i], c.part[i]));
}
// The larger value; b if either is NaN.
HWY_INLINE V16 Max(V16 a, V16 b) {
  ABLATE_BY_PART(V16, hn::IfThenElse(hn::Gt(a.part[i], b.part[i]), a.part[i], b.part[i]));
}
HWY_INLINE V16 Min(V16 a, V16 b) {
  ABLATE_BY_PART(V16, hn::IfThenElse(hn::Lt(a.part[i], b.part[i]), a.part[i], b.part[i]));
}
HWY_INLINE M16 Gt(V16 a, V16 b) { ABLATE_BY_PART(M16, hn::Gt(a.part[i], b.part[i])); }
HWY_INLINE M16 And(M16 a, M16 b) { ABLATE_BY_PART(M16, hn::And(a.part[i], b.part[i])); }
HWY_INLINE V16 IfThenElse(M16 mask, V16 a, V16 b) {
  ABLATE_BY_PART(V16, hn::IfThenElse(mask.part[i], a.part[i], b.part[i]));
}
HWY_INLINE V16 IfThenElseZero(M16 mask, V16 a) {
  ABLATE_BY_PART(V16, hn::IfThenElseZero(mask.part[i], a.part[i]));
}
HWY_INLINE V16 IfThenZeroElse(M16 mask, V16 a) {
  ABLATE_BY_PART(V16, hn::IfThenZeroElse(mask.part[i], a.part[i]));
}
// Lanes first, first + 1, …
HWY_INLINE V16 Iota(float first) {
  ABLATE_BY_PART(V16, hn::Iota(D(), first + static_cast<float>(i * kPart)));
}
// Lanes below `count`.
HWY_INLINE M16 FirstLanes(int count) { return Gt(Set(static_cast<float>(count)), Iota(0)); }
HWY_INLINE V16 CopySign(V16 magnitude, V16 sign) {
  ABLATE_BY_PART(V16, hn::CopySign(magnitude.part[i], sign.part[i]));
}

#undef ABLATE_BY_PART

HWY_INLINE void Store(V16 a, float* to) {
  for (int i = 0; i < kParts; ++i) hn::StoreU(a.part[i], D(), to + i * kPart);
}

// Stores only the first `count` lanes.
HWY_INLINE void StoreFirst(V16 a, int count, float* to) {
  if constexpr (kParts == 1) {
    hn::BlendedStore(a.part[0], hn::FirstN(D(), static_cast<size_t>(count)), D(), to);
  } else {
    HWY_ALIGN float lanes[kLanes];
    Store(a, lanes);
    for (int i = 0; i < count; ++i) to[i] = lanes[i];
  }
}

// Adds lanes k and k + 8 first, then k and k + 4, k + 2, k + 1: the same tree on every target.
HWY_INLINE float Sum(V16 a) {
  HWY_ALIGN float lanes[kLanes];
  Store(a, lanes);
  const hn::FixedTag<float, 4> quad;
  const auto low = hn::Add(hn::Load(quad, lanes), hn::Load(quad, lanes + 8));
  const auto high = hn::Add(hn::Load(quad, lanes + 4), hn::Load(quad, lanes + 12));
  const auto four = hn::Add(low, high);
  const auto two = hn::Add(four, hn::Shuffle1032(four));
  return hn::GetLane(hn::Add(two, hn::Shuffle2301(two)));
}

// eˣ within one unit in the last place for −87 to 88; clamps outside. NaN stays NaN. Computed as
// 2ⁿ·eʳ with n the integer nearest x/ln 2 and r = x − n·ln 2; ln 2 is two floats, the first with so
// few digits that n times it is exact.
HWY_INLINE V16 Exp(V16 x) {
  x = Min(Set(88.0f), Max(Set(-87.0f), x));
  V16 result;
  for (int i = 0; i < kParts; ++i) {
    const auto set = [](float value) HWY_ATTR { return hn::Set(D(), value); };
    const Part n = hn::Round(hn::Mul(x.part[i], set(1.44269504f)));
    Part r = hn::MulAdd(n, set(-0.693359375f), x.part[i]);
    r = hn::MulAdd(n, set(2.12194440e-4f), r);
    // (eʳ − 1 − r)/r² on ±ln 2/2, fitted to a relative error of eʳ of 4e-9.
    Part q = set(1.3751381e-3f);
    q = hn::MulAdd(q, r, set(8.3689234e-3f));
    q = hn::MulAdd(q, r, set(4.1669534e-2f));
    q = hn::MulAdd(q, r, set(1.66665184e-1f));
    q = hn::MulAdd(q, r, set(4.99999886e-1f));
    const Part e = hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), set(1.0f));
    const hn::RebindToSigned<D> integers;
    const auto exponent =
        hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127)));
    result.part[i] = hn::Mul(e, hn::BitCast(D(), exponent));
  }
  return result;
}

// tanh x, to two units in the last place: near 0 by an odd polynomial, fitted to a relative error
// of 4e-9, because 1 − 2/(e²ˣ + 1) loses the digits of a small result.
HWY_INLINE V16 Tanh(V16 x) {
  const V16 square = Mul(x, x), one = Set(1.0f);
  constexpr float kFitted[] = {2.059098421e-2f, -5.372106661e-2f, 1.333112752e-1f, -3.333326053e-1f,
                               9.999999961e-1f};
  V16 p = Set(-5.659984802e-3f);
#pragma GCC unroll 5
  for (const float coefficient : kFitted) p = MulAdd(p, square, Set(coefficient));
  const V16 size = Abs(x);
  const V16 far = Sub(one, Div(Set(2.0f), Add(Exp(Add(size, size)), one)));
  return IfThenElse(Gt(Set(0.625f), size), Mul(p, x), CopySign(far, x));
}

// erfc(x)·e^(x²) for x ≥ 0: t·p(t), t = 1/(1 + 0.45x), with a polynomial p fitted to a relative
// error of 4e-8.
HWY_INLINE V16 ScaledErfc(V16 x) {
  const V16 one = Set(1.0f);
  const V16 t = Div(one, MulAdd(x, Set(0.45f), one));
  constexpr float kFitted[] = {1.916757559e-1f,  -3.022053718e-1f, 1.438175349e-1f,
                               -2.306582687e-2f, 1.201537490e-1f,  1.752202014e-1f,
                               2.282740681e-1f,  2.538830950e-1f,  2.538853210e-1f};
  V16 p = Set(-4.163854979e-2f);
#pragma GCC unroll 9
  for (const float coefficient : kFitted) p = MulAdd(p, t, Set(coefficient));
  return Mul(p, t);
}

// 1/(1 + e⁻ˣ).
HWY_INLINE V16 Sigmoid(V16 x) { return Div(Set(1.0f), Add(Set(1.0f), Exp(Neg(x)))); }

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_VECTOR_INL_H_
