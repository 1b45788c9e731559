// Converts query–key products to attention weights, in memory or in registers: a lane is a query,
// and a vector belongs to one key. Included once per target.
#if defined(ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_WEIGHTS_INL_H_
#undef ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_WEIGHTS_INL_H_
#else
#define ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_WEIGHTS_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "server/engine/native/kernels.h"
#include "server/engine/native/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

// One vector per key in memory, `stride` floats apart.
struct StoredKeys {
  template <typename Function>
  HWY_INLINE void Read(const Function& function) const {
    for (int key = 0; key < count; ++key) function(key, Load(first + key * stride));
  }
  template <typename Function>
  HWY_INLINE void Replace(const Function& function) const {
    for (int key = 0; key < count; ++key) {
      Store(function(key, Load(first + key * stride)), first + key * stride);
    }
  }

  float* first;
  ptrdiff_t stride;
  int count;
};

// One vector per key in registers.
template <int kCount>
struct HeldKeys {
  template <typename Function>
  HWY_INLINE void Read(const Function& function) const {
#pragma GCC unroll 16
    for (int key = 0; key < kCount; ++key) function(key, held[key]);
  }
  template <typename Function>
  HWY_INLINE void Replace(const Function& function) const {
#pragma GCC unroll 16
    for (int key = 0; key < kCount; ++key) held[key] = function(key, held[key]);
  }

  V16 (&held)[kCount];
};

// `seen(key, x, otherwise)` returns x in the lanes whose query sees the key. A query that sees no
// key gets weights of 0. The bits don't depend on whether unseen keys are included.
template <typename Keys, typename Seen>
HWY_INLINE void FormWeights(const AttentionHead& a, const Keys& keys, const Seen& seen) {
  const V16 scale = Set(a.scale);
  if (a.kind == AttentionKind::kSigmoid) {
    const V16 bias = Set(a.bias);
    keys.Replace([&](int key, V16 product) HWY_ATTR {
      const V16 score = MulAdd(product, scale, bias);
      return seen(key, Sigmoid(score), Zero());
    });
    return;
  }
  // If all scores are −∞ the result is NaN, and so are the weights.
  const V16 lowest = Set(-std::numeric_limits<float>::infinity());
  V16 largest = lowest;
  keys.Read([&](int key, V16 product) HWY_ATTR {
    const V16 score = seen(key, Mul(product, scale), lowest);
    largest = Max(largest, score);
  });
  V16 sum = Zero();
  keys.Replace([&](int key, V16 product) HWY_ATTR {
    const V16 e = seen(key, Exp(Sub(Mul(product, scale), largest)), Zero());
    sum = Add(sum, e);
    return e;
  });
  // Queries that see no key have a sum of 0.
  const V16 inverse = Div(Set(1.0f), sum);
  keys.Replace([&](int key, V16 e) HWY_ATTR { return seen(key, Mul(e, inverse), Zero()); });
}

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ABLATE_SERVER_ENGINE_NATIVE_ATTENTION_WEIGHTS_INL_H_
